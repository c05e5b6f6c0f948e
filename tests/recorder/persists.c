/* SPDX-License-Identifier: Apache-2.0 */
/* Persists pieces of a file with libpmem and prints the lines that must be flushed for that, in
 * order: "flush ADDRESS". */
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LINE 64

static void expect_lines(const char *start, size_t bytes) {
  uintptr_t line = (uintptr_t)start / LINE * LINE;
  for (; line < (uintptr_t)start + bytes; line += LINE)
    printf("flush %ju\n", (uintmax_t)line);
}

int main(int count, char **arguments) {
  static const size_t offsets[] = {0, 8, 60, 64, 4090, 1000}, sizes[] = {8, 64, 8, 640, 12, 1};
  size_t mapped;
  int is_pmem;
  if (count != 2)
    return 2;
  char *pool = pmem_map_file(arguments[1], 1 << 20, PMEM_FILE_CREATE, 0600, &mapped, &is_pmem);
  if (pool == NULL || !is_pmem) {
    fprintf(stderr, "%s\n", pool == NULL ? pmem_errormsg() : "not persistent memory");
    return 3;
  }
  printf("pool %ju\nbytes %zu\n", (uintmax_t)(uintptr_t)pool, mapped);
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    char *piece = pool + offsets[i];
    memset(piece, (int)i + 1, sizes[i]);
    pmem_persist(piece, sizes[i]);
    expect_lines(piece, sizes[i]);
  }
  for (int i = 0; i < 20; i++) {
    uint64_t *word = (uint64_t *)(pool + 8192 + i * 136);
    *word = (uint64_t)i;
    pmem_flush(word, sizeof(*word));
    expect_lines((char *)word, sizeof(*word));
  }
  pmem_drain();
  char text[100];
  memset(text, 'x', sizeof(text));
  pmem_memcpy(pool + 65536 + 3, text, sizeof(text), PMEM_F_MEM_TEMPORAL);
  expect_lines(pool + 65536 + 3, sizeof(text));
  return 0;
}
