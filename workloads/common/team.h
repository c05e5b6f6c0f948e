// SPDX-License-Identifier: Apache-2.0
//
// A team of threads that work on one problem. The calling thread is its first member. All of them
// stand at a barrier when the region of interest begins, and it ends when the last has finished.
#ifndef TEAM_H
#define TEAM_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "region.h"

enum { TEAM_THREADS_MAX = 256 };

// Whether there are more threads than processors.
static bool is_team_crowded;

// Where work is dealt out to whoever asks for it, a thread of a crowded team would get all that
// there is during its slice of time, and the others nothing. Here it lets them go on first, so that
// the work is shared as among threads that run side by side.
static inline void take_turns(void) {
  if (is_team_crowded)
    sched_yield();
}

typedef void (*team_work)(unsigned thread, void *problem);

struct team {
  team_work work;
  void *problem;
  pthread_barrier_t barrier;
};

struct team_member {
  struct team *team;
  unsigned thread;
  pthread_t handle;
};

static inline void *team_member_run(void *argument) {
  struct team_member *member = argument;
  struct team *team = member->team;
  // Between these two barriers the first member begins the region, after the start of every other.
  pthread_barrier_wait(&team->barrier);
  pthread_barrier_wait(&team->barrier);
  team->work(member->thread, team->problem);
  pthread_barrier_wait(&team->barrier);
  return NULL;
}

// Runs `work` on threads 0 to `threads` - 1 and returns when all have finished.
static inline void team_run(unsigned threads, team_work work, void *problem) {
  struct team team = {.work = work, .problem = problem};
  struct team_member members[TEAM_THREADS_MAX];
  is_team_crowded = threads > sysconf(_SC_NPROCESSORS_ONLN);
  pthread_barrier_init(&team.barrier, NULL, threads);
  for (unsigned thread = 1; thread < threads; thread++) {
    members[thread] = (struct team_member){.team = &team, .thread = thread};
    if (pthread_create(&members[thread].handle, NULL, team_member_run, &members[thread]) != 0) {
      perror("cannot start a thread");
      exit(EXIT_FAILURE);
    }
  }
  pthread_barrier_wait(&team.barrier);
  region_begin();
  pthread_barrier_wait(&team.barrier);
  work(0, problem);
  pthread_barrier_wait(&team.barrier);
  region_end();
  for (unsigned thread = 1; thread < threads; thread++)
    pthread_join(members[thread].handle, NULL);
  pthread_barrier_destroy(&team.barrier);
}

#endif
