// SPDX-License-Identifier: Apache-2.0
//
// What the programs that wait have in common. A program gives `run`, what each thread of the team
// does, and `critical_path`, the work that no schedule can do side by side, counted by hand. There
// are two regions of interest: the first does the work of the critical path on one thread that
// waits for nobody, the last runs the team. So the replayed time of the last over that of the first
// is 1 where waiting is replayed as waiting, whatever a unit costs.
//
// With FAR, the memory of each thread is a file of its own, which its work misses caches in, and
// there is a region between the two: the critical path where the first thread's file lies on a node
// at which its units take FIRST_SLOWER times as long.
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

enum { FIRST_SLOWER = 5 };

// Work one behind the other: how long it takes, in units of a thread that is not slower, and how
// much of it is whose.
struct path {
  unsigned time;
  unsigned units[THREADS];
};

static unsigned first_slower = 1;

static inline struct path path_then(struct path path, unsigned thread, unsigned units) {
  path.time += units * (thread == 0 ? first_slower : 1);
  path.units[thread] += units;
  return path;
}

static inline struct path path_later(struct path one, struct path other) {
  return other.time > one.time ? other : one;
}

// Each thread's work of a round, which ends when all have done theirs.
static inline struct path path_rounds(unsigned (*work_of)(unsigned thread, unsigned round)) {
  struct path path = {0};
  for (unsigned round = 0; round < ROUNDS; round++) {
    struct path last = path;
    for (unsigned thread = 0; thread < THREADS; thread++)
      last = path_later(last, path_then(path, thread, work_of(thread, round)));
    path = last;
  }
  return path;
}

// Each thread has its own work, and the one that has most to do is the last.
static inline struct path path_apart(unsigned units) {
  struct path last = {0};
  for (unsigned thread = 0; thread < THREADS; thread++)
    last = path_later(last, path_then((struct path){0}, thread, units));
  return last;
}

// All threads' work, one after the other.
static inline struct path path_in_turn(struct path path, unsigned units_each) {
  for (unsigned thread = 0; thread < THREADS; thread++)
    path = path_then(path, thread, units_each);
  return path;
}

// Iterations, each for the thread that is free first, in rounds that end when all have done theirs.
static inline struct path path_handed_out(unsigned iterations, unsigned units) {
  struct path path = {0};
  for (unsigned round = 0; round < ROUNDS; round++) {
    struct path of[THREADS], last = path;
    for (unsigned thread = 0; thread < THREADS; thread++)
      of[thread] = path;
    for (unsigned i = 0; i < iterations; i++) {
      unsigned first = THREADS - 1;
      for (unsigned thread = THREADS - 1; thread-- > 0;)
        if (of[thread].time < of[first].time)
          first = thread;
      of[first] = path_then(of[first], first, units);
      last = path_later(last, of[first]);
    }
    path = last;
  }
  return path;
}

static void run(unsigned thread);
static struct path critical_path(void);

static void run_critical_path(unsigned thread, void *problem) {
  (void)thread;
  (void)problem;
  struct path path = critical_path();
  for (unsigned of = 0; of < THREADS; of++) {
    unsigned units = path.units[of];
    for (; units > LONG_WORK; units -= LONG_WORK)
      work(of, LONG_WORK);
    work(of, units);
  }
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
  for (unsigned thread = 0; thread < THREADS; thread++)
    work(thread, LONG_WORK);
  team_run(1, run_critical_path, NULL);
#ifdef FAR
  first_slower = FIRST_SLOWER;
  team_run(1, run_critical_path, NULL);
#endif
  RUN_TEAM();
  return 0;
}

#endif
