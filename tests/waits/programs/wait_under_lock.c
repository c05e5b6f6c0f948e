// SPDX-License-Identifier: Apache-2.0
//
// A thread polls a count of beats while it holds a mutex. One thread beats without the mutex, so
// the poll always ends; two others beat behind critical sections of their own, and it may be such a
// beat that ended it. Whoever has the mutex first, the one that needs no mutex takes longest.
#include <stdatomic.h>

#include "rounds.h"
#include "wait_while.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(LINE_BYTES) atomic_uint beats;

static void beat_alone(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    work(thread, LONG_WORK);
    atomic_fetch_add(&beats, 1);
  }
}

static void beat_behind_lock(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS / 4; round++) {
    pthread_mutex_lock(&mutex);
    work(thread, SHORT_WORK / 10);
    pthread_mutex_unlock(&mutex);
    atomic_fetch_add(&beats, 1);
    work(thread, SHORT_WORK);
  }
}

static void wait_under_lock(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    pthread_mutex_lock(&mutex);
    WAIT_WHILE(atomic_load(&beats) <= round);
    pthread_mutex_unlock(&mutex);
    work(thread, SHORT_WORK / 10);
  }
}

static void run(unsigned thread) {
  if (thread == 0)
    beat_alone(thread);
  else if (thread == 1)
    wait_under_lock(thread);
  else
    beat_behind_lock(thread);
}

static struct path critical_path(void) {
  return path_then((struct path){0}, 0, ROUNDS * LONG_WORK);
}
