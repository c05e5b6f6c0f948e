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

static struct path critical_path(void) {
  struct path of[THREADS] = {0};
  for (unsigned round = 0; round < ROUNDS; round++) {
    for (unsigned thread = 0; thread < THREADS; thread++)
      of[thread] = path_then(of[thread], thread, rotating_work(thread, round));
    for (unsigned thread = 0; thread < THREADS; thread++)
      of[thread] = path_later(of[thread], of[round % THREADS]);
  }
  struct path last = of[0];
  for (unsigned thread = 1; thread < THREADS; thread++)
    last = path_later(last, of[thread]);
  return last;
}
