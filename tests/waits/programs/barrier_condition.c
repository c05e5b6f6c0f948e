// SPDX-License-Identifier: Apache-2.0
//
// A barrier of a mutex and a condition variable: the last to arrive begins the next generation.
#include "barrier_rounds.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next_begins = PTHREAD_COND_INITIALIZER;
static unsigned missing = THREADS, generation;

static void barrier_wait(unsigned thread) {
  (void)thread;
  pthread_mutex_lock(&mutex);
  unsigned own = generation;
  if (--missing == 0) {
    missing = THREADS;
    generation++;
    pthread_cond_broadcast(&next_begins);
  } else {
    while (generation == own)
      pthread_cond_wait(&next_begins, &mutex);
  }
  pthread_mutex_unlock(&mutex);
}
