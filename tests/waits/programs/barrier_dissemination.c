// SPDX-License-Identifier: Apache-2.0
//
// A dissemination barrier: in step k each thread tells the one 2^k behind it and waits for the one
// 2^k before it. Two sets of flags take turns, and their sense reverses when both were used.
#include <stdatomic.h>

#include "barrier_rounds.h"
#include "wait_while.h"

enum { STEPS = 2 };
_Static_assert(THREADS <= 1 << STEPS, "too few steps for all threads to hear of each other");

struct flag {
  _Alignas(LINE_BYTES) atomic_bool is_set;
};

static struct flag flags[THREADS][2][STEPS];
static _Thread_local unsigned parity;
static _Thread_local bool sense = true;

static void barrier_wait(unsigned thread) {
  for (unsigned step = 0; step < STEPS; step++) {
    unsigned partner = (thread + (1u << step)) % THREADS;
    atomic_store(&flags[partner][parity][step].is_set, sense);
    WAIT_WHILE(atomic_load(&flags[thread][parity][step].is_set) != sense);
  }
  if (parity == 1)
    sense = !sense;
  parity = 1 - parity;
}
