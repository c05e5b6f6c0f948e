// SPDX-License-Identifier: Apache-2.0
//
// A counter that two threads share goes up by compare and exchange, which one of them now and then
// repeats because the other was quicker.
#include <stdatomic.h>

#define OTHER count
#include "working.h"

enum { COUNTS = 50000 };

static atomic_uint counter;

static void count(void) {
  for (unsigned round = 0; round < COUNTS; round++) {
    unsigned seen = atomic_load(&counter);
    while (!atomic_compare_exchange_weak(&counter, &seen, seen + 1))
      ;
  }
}

static uint64_t run(void) {
  count();
  return COUNTS * 4;
}
