// SPDX-License-Identifier: Apache-2.0
//
// News of each round, told by the thread that has the long work of the round, another one each
// time. All others wait for it, so the critical path is the long work of all rounds. The program
// gives `tell` and `wait_for`.
#ifndef ROTATING_NEWS_H
#define ROTATING_NEWS_H

#include "rounds.h"

static void tell(unsigned round);
static void wait_for(unsigned round);

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    work(thread, rotating_work(thread, round));
    if (round % THREADS == thread)
      tell(round);
    else
      wait_for(round);
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

#endif
