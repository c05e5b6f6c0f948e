// SPDX-License-Identifier: Apache-2.0
//
// Rounds of work with a barrier behind each. The program gives `barrier_wait`. The critical path is
// the longest work of each round.
#ifndef BARRIER_ROUNDS_H
#define BARRIER_ROUNDS_H

#include "rounds.h"

static void barrier_wait(unsigned thread);

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    work(thread, rotating_work(thread, round));
    barrier_wait(thread);
  }
}

static struct path critical_path(void) { return path_rounds(rotating_work); }

#endif
