// SPDX-License-Identifier: Apache-2.0
//
// One word is read a million times, while another thread stores to it: a count ends it.
#include <stdatomic.h>

#define OTHER store
#include "working.h"

static atomic_uint word;
static volatile unsigned sum;

static void store(void) {
  for (unsigned round = 0; round < 1000; round++)
    atomic_store(&word, round);
}

static uint64_t run(void) {
  unsigned of_all = 0;
  for (unsigned round = 0; round < MILLION; round++)
    of_all += atomic_load_explicit(&word, memory_order_relaxed);
  sum = of_all;
  return MILLION;
}
