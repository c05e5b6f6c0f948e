// SPDX-License-Identifier: Apache-2.0
//
// What zswap and ksm do to pages, for each page of a file: compressing it, decompressing it,
// hashing it, comparing it with one that is the same and with one that differs in its first line,
// and copying it; in this order, each in a region of its own, so that a replay times each. The
// libraries are those that the kernel's code comes from: LZO1X-1, LZ4's fast mode, zstd level 3,
// XXH64.
//
//   page_work FILE CODEC           CODEC: lzo, lz4, zstd
//
// Pages begin in memory: before each region the program reads as much as caches hold.
#include <lz4.h>
#include <lzo/lzo1x.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "region.h"

enum { PAGE = 4096, PAGES_MAX = 64, BOUND = 2 * PAGE, SWEEP = 6 << 20, LINE = 64 };

static _Alignas(PAGE) unsigned char pages[PAGES_MAX][PAGE], copies[PAGES_MAX][PAGE];
static _Alignas(PAGE) unsigned char packed[PAGES_MAX][BOUND];
static _Alignas(PAGE) unsigned char others[SWEEP];
static _Alignas(LINE) unsigned char lzo_memory[LZO1X_1_MEM_COMPRESS], lz4_state[1 << 15];
static volatile uint64_t kept;

static ZSTD_CCtx *zstd_in;
static ZSTD_DCtx *zstd_out;

static size_t compress(const char *codec, const unsigned char *from, unsigned char *to) {
  if (strcmp(codec, "lzo") == 0) {
    lzo_uint bytes = BOUND;
    return lzo1x_1_compress(from, PAGE, to, &bytes, lzo_memory) == LZO_E_OK ? bytes : 0;
  }
  if (strcmp(codec, "lz4") == 0)
    return (size_t)LZ4_compress_fast_extState(lz4_state, (const char *)from, (char *)to, PAGE,
                                              BOUND, 1);
  const size_t bytes = ZSTD_compressCCtx(zstd_in, to, BOUND, from, PAGE, 3);
  return ZSTD_isError(bytes) ? 0 : bytes;
}

static size_t decompress(const char *codec, const unsigned char *from, size_t bytes,
                         unsigned char *to) {
  if (strcmp(codec, "lzo") == 0) {
    lzo_uint whole = PAGE;
    return lzo1x_decompress_safe(from, bytes, to, &whole, NULL) == LZO_E_OK ? whole : 0;
  }
  if (strcmp(codec, "lz4") == 0)
    return (size_t)LZ4_decompress_safe((const char *)from, (char *)to, (int)bytes, PAGE);
  return ZSTD_decompressDCtx(zstd_out, to, PAGE, from, bytes);
}

// As zswap_is_page_same_filled does: word for word from the first.
static int is_same_filled(const unsigned char *page) {
  const uint64_t *words = (const uint64_t *)page;
  for (size_t place = 1; place < PAGE / sizeof *words; place++)
    if (words[place] != words[0])
      return 0;
  return 1;
}

static void fill(unsigned char *page, uint64_t word) {
  for (size_t place = 0; place < PAGE; place += sizeof word)
    memcpy(page + place, &word, sizeof word);
}

static void sweep(void) {
  uint64_t sum = 0;
  for (size_t place = 0; place < SWEEP; place += LINE)
    sum += others[place];
  kept = sum;
}

enum work { COMPRESS, DECOMPRESS, HASH, COMPARE_PAGE, COMPARE_LINE, COPY, WORKS };

// Zero for work whose result is wrong. `bytes` are those that the page compresses to; none if it is
// filled with one word.
static int do_work(enum work work, const char *codec, size_t page, size_t bytes) {
  unsigned char *const from = pages[page], *const other = copies[page];
  size_t result = 1;
  uint64_t word;
  region_begin();
  switch (work) {
  case COMPRESS:
    if (!is_same_filled(from))
      result = compress(codec, from, packed[page]);
    break;
  case DECOMPRESS:
    memcpy(&word, from, sizeof word);
    if (bytes == 0)
      fill(other, word);
    else
      result = decompress(codec, packed[page], bytes, other) == PAGE;
    break;
  case HASH:
    kept = XXH64(from, PAGE, 0);
    break;
  case COMPARE_PAGE:
    result = memcmp(from, other, PAGE) == 0;
    break;
  case COMPARE_LINE:
    result = memcmp(from, other, PAGE) != 0;
    break;
  case COPY:
    memcpy(other, from, PAGE);
    break;
  case WORKS:
    break;
  }
  region_end();
  return result != 0;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  const char *const codec = argv[2];
  FILE *const file = fopen(argv[1], "rb");
  if (file == NULL || lzo_init() != LZO_E_OK)
    return 1;
  const size_t count = fread(pages, PAGE, PAGES_MAX, file);
  fclose(file);
  zstd_in = ZSTD_createCCtx();
  zstd_out = ZSTD_createDCtx();
  memset(others, 1, SWEEP);

  static unsigned char warm[BOUND], again[PAGE];
  for (size_t page = 0; page < count; page++) {
    const int same = is_same_filled(pages[page]);
    const size_t bytes = same ? 0 : compress(codec, pages[page], packed[page]);
    for (enum work work = COMPRESS; work < WORKS; work++) {
      if (work == COMPARE_LINE)
        copies[page][0] ^= 1;
      sweep();
      // What the code itself needs is there: it has just worked on another page.
      kept = decompress(codec, warm, compress(codec, others, warm), again);
      if (!do_work(work, codec, page, bytes))
        return 1;
      if (memcmp(pages[page], copies[page], PAGE) != 0 && work != COMPRESS && work != COMPARE_LINE)
        return 1;
    }
  }
  return 0;
}
