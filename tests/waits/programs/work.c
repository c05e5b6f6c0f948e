// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <stdint.h>

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
