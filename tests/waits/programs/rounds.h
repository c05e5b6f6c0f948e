// SPDX-License-Identifier: Apache-2.0
//
// What the programs that wait have in common. A program gives `run`, what each thread of the team
// does, and `critical_path`, the work that no schedule can do side by side, in units, counted by
// hand. There are two regions of interest: the first does the work of the critical path on one
// thread that waits for nobody, the second runs the team. So the replayed time of the second over
// that of the first is 1 where waiting is replayed as waiting, whatever a unit costs.
#ifndef ROUNDS_H
#define ROUNDS_H

#include "team.h"
#include "work.h"

#ifndef THREADS
#define THREADS 4
#endif

// Where waiting ends in system calls, rounds are longer, so that these are little beside the work.
#ifdef LONG_ROUNDS
enum { ROUNDS = 5, SHORT_WORK = 16000, LONG_WORK = 48000 };
#else
enum { ROUNDS = 20, SHORT_WORK = 1000, LONG_WORK = 3000 };
#endif

// One thread has long work in each round, another one each time.
static inline unsigned rotating_work(unsigned thread, unsigned round) {
  return round % THREADS == thread ? LONG_WORK : SHORT_WORK / 10 * (10 + thread);
}

static void run(unsigned thread);
static unsigned critical_path(void);

static void run_critical_path(unsigned thread, void *problem) {
  (void)problem;
  unsigned units = critical_path();
  for (; units > LONG_WORK; units -= LONG_WORK)
    work(thread, LONG_WORK);
  work(thread, units);
}

// Runs `run` on all threads, in a region of interest.
#ifndef RUN_TEAM
#define RUN_TEAM run_threads
static void run_member(unsigned thread, void *problem) {
  (void)problem;
  run(thread);
}

static void run_threads(void) { team_run(THREADS, run_member, NULL); }
#endif
static void RUN_TEAM(void);

int main(void) {
  work(0, LONG_WORK);
  team_run(1, run_critical_path, NULL);
  RUN_TEAM();
  return 0;
}

#endif
