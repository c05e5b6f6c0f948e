// SPDX-License-Identifier: Apache-2.0
//
// A flag for each round, set by the thread that has the long work of the round, another one each
// time. All others wait for it, so the critical path is the long work of all rounds.
#include <stdatomic.h>

#include "rounds.h"
#include "wait_while.h"

struct flag {
  _Alignas(LINE_BYTES) atomic_bool is_set;
};

static struct flag flags[ROUNDS];

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    work(thread, rotating_work(thread, round));
    if (round % THREADS == thread)
      atomic_store(&flags[round].is_set, true);
    else
      WAIT_WHILE(!atomic_load(&flags[round].is_set));
  }
}

static unsigned critical_path(void) { return ROUNDS * LONG_WORK; }
