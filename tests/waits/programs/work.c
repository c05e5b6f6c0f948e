// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <stdint.h>

#ifdef FAR

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// Of each thread. A unit's line is that of the one before times 5, and 1, and what was read there:
// it is another one, and far from it, until all have been read.
enum { LINES = 1 << 16 };

static struct {
  uint64_t (*lines)[LINE_BYTES / sizeof(uint64_t)];
  _Alignas(LINE_BYTES) uint64_t line;
} memory[WORKERS_MAX];

__attribute__((constructor)) static void map_files(void) {
  for (unsigned thread = 0; thread < WORKERS_MAX; thread++) {
    char name[] = {'w', 'o', 'r', 'k', (char)('0' + thread), 0};
    int file = memfd_create(name, 0);
    size_t bytes = (size_t)LINES * LINE_BYTES;
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
      abort();
    memory[thread].lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory[thread].lines == MAP_FAILED)
      abort();
    close(file);
  }
}

void work(unsigned thread, unsigned units) {
  uint64_t line = memory[thread].line;
  for (unsigned unit = 0; unit < units; unit++)
    line = (line * 5 + 1 + memory[thread].lines[line][0]) % LINES;
  memory[thread].line = line;
}

#else

enum { WORDS = 256 };

static struct {
  _Alignas(LINE_BYTES) uint64_t words[WORDS];
  _Alignas(LINE_BYTES) uint64_t result;
} memory[WORKERS_MAX];

void work(unsigned thread, unsigned units) {
  uint64_t result = memory[thread].result;
  for (unsigned unit = 0; unit < units; unit++)
    result = (result + memory[thread].words[unit % WORDS]) * 6364136223846793005u;
  memory[thread].result = result;
}

#endif
