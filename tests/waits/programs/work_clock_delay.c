// SPDX-License-Identifier: Apache-2.0
//
// A delay: the time stamp counter ends it, no store of anyone.
#include <x86intrin.h>

#include "working.h"

static uint64_t run(void) {
  uint64_t begin = __rdtsc();
  while (__rdtsc() - begin < 100000000)
    __builtin_ia32_pause();
  return 20000;
}
