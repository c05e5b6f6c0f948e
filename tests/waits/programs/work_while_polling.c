// SPDX-License-Identifier: Apache-2.0
//
// Another thread's store ends this loop, but what it computes meanwhile is used behind it.
#include <stdatomic.h>

#define OTHER store
#include "working.h"

static atomic_uint word;
static volatile uint64_t result;

static void store(void) {
  for (volatile unsigned round = 0; round < MILLION; round++)
    ;
  atomic_store(&word, 1);
}

static uint64_t run(void) {
  uint64_t product = 1, steps = 0;
  for (; atomic_load(&word) == 0; steps++)
    product = product * 3 + steps;
  result = product;
  return steps * 4;
}
