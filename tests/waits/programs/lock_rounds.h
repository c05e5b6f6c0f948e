// SPDX-License-Identifier: Apache-2.0
//
// Rounds of long work under a lock and a little outside. The program gives `lock` and `unlock`. The
// lock is never free, so the critical path is the work under it, and that before the first round
// and behind the last.
//
// A thread may do all its rounds before another one comes, and then nobody is recorded waiting. So
// the first thread keeps the lock until the others poll; with UNCONTENDED it does not, and a record
// may have nothing but the code to say that there is a lock.
#ifndef LOCK_ROUNDS_H
#define LOCK_ROUNDS_H

#include <semaphore.h>
#include <time.h>

#include "rounds.h"

enum { OUTSIDE_WORK = 100 };

static void lock(unsigned thread);
static void unlock(unsigned thread);

static sem_t may_come;

__attribute__((constructor)) static void begin_lock_rounds(void) { sem_init(&may_come, 0, 0); }

// Before a thread takes the lock for the first time.
static void await_holder(unsigned thread) {
#ifdef UNCONTENDED
  (void)thread;
#else
  if (thread != 0)
    sem_wait(&may_come);
#endif
}

// While it has it for the first time.
static void await_others(unsigned thread) {
#ifdef UNCONTENDED
  (void)thread;
#else
  if (thread != 0)
    return;
  for (unsigned other = 1; other < THREADS; other++)
    sem_post(&may_come);
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
#endif
}

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    work(thread, OUTSIDE_WORK);
    if (round == 0)
      await_holder(thread);
    lock(thread);
    if (round == 0)
      await_others(thread);
    work(thread, LONG_WORK);
    unlock(thread);
  }
  work(thread, OUTSIDE_WORK);
}

static struct path critical_path(void) {
  struct path path = path_in_turn((struct path){0}, ROUNDS * LONG_WORK);
  return path_then(path, THREADS - 1, 2 * OUTSIDE_WORK);
}

#endif
