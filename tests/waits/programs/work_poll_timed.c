// SPDX-License-Identifier: Apache-2.0
//
// A poll that gives up after some time: nobody stores to the word.
#include <stdatomic.h>
#include <x86intrin.h>

#include "working.h"

static atomic_uint word;

static uint64_t run(void) {
  uint64_t begin = __rdtsc();
  while (atomic_load(&word) == 0 && __rdtsc() - begin < 100000000)
    __builtin_ia32_pause();
  return 20000;
}
