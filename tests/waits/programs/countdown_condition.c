// SPDX-License-Identifier: Apache-2.0
//
// The first thread waits for a count of the others, kept by a mutex and a condition variable, and
// lets them begin the next round.
#include "rounds.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned missing, begun;

static void begin_round(unsigned round) {
  pthread_mutex_lock(&mutex);
  missing = THREADS - 1;
  begun = round + 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static void await_others(void) {
  pthread_mutex_lock(&mutex);
  while (missing != 0)
    pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void await_round(unsigned round) {
  pthread_mutex_lock(&mutex);
  while (begun <= round)
    pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void count_down(void) {
  pthread_mutex_lock(&mutex);
  if (--missing == 0)
    pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static unsigned work_of(unsigned thread, unsigned round) {
  if (thread == 0)
    return SHORT_WORK / 10;
  return round % (THREADS - 1) == thread - 1 ? LONG_WORK : SHORT_WORK;
}

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    if (thread == 0) {
      begin_round(round);
      work(thread, work_of(thread, round));
      await_others();
    } else {
      await_round(round);
      work(thread, work_of(thread, round));
      count_down();
    }
  }
}

static struct path critical_path(void) { return path_rounds(work_of); }
