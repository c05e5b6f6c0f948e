/* SPDX-License-Identifier: Apache-2.0 */
#include "random_bytes.h"

#include "platform.h"
#include "recording.h"

#include <errno.h>
#include <string.h>

/* As much as the kernel gives at once. */
#define FILL_MAX 0x1ffffffu
#define PIECE_BYTES 256u

static uint64_t drawn;

uint64_t random_word(void) {
  return random_word_of(recording.area->seed, __atomic_add_fetch(&drawn, 1, __ATOMIC_RELAXED));
}

/* SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). */
uint64_t random_word_of(uint64_t seed, uint64_t step) {
  uint64_t z = seed + step * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

void random_bytes(void *to, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    uint64_t word = random_word();
    size_t left = bytes - at;
    memcpy((uint8_t *)to + at, &word, left < sizeof(word) ? left : sizeof(word));
  }
}

int64_t random_fill(uint64_t to, uint64_t bytes) {
  uint8_t piece[PIECE_BYTES];
  if (bytes > FILL_MAX)
    bytes = FILL_MAX;
  for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
    size_t count = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
    random_bytes(piece, count);
    if (!platform_write(to + at, piece, count))
      return at == 0 ? -EFAULT : (int64_t)at;
  }
  return (int64_t)bytes;
}
