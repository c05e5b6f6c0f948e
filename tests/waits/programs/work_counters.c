// SPDX-License-Identifier: Apache-2.0
//
// A locked counter that all threads share goes up, for as long as a count of their own says.
#include <stdatomic.h>

#define OTHER count
#include "working.h"

enum { COUNTS = 100000 };

static atomic_uint counter;

static void count(void) {
  for (unsigned round = 0; round < COUNTS; round++)
    atomic_fetch_add(&counter, 1);
}

static uint64_t run(void) {
  count();
  return COUNTS;
}
