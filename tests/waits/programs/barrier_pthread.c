// SPDX-License-Identifier: Apache-2.0
//
// The reference of the barriers: a barrier that the recorder knows by its calls.
#include "barrier_rounds.h"

static pthread_barrier_t barrier;

__attribute__((constructor)) static void begin(void) {
  pthread_barrier_init(&barrier, NULL, THREADS);
}

static void barrier_wait(unsigned thread) {
  (void)thread;
  pthread_barrier_wait(&barrier);
}
