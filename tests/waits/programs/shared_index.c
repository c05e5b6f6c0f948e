// SPDX-License-Identifier: Apache-2.0
//
// Iterations that threads take from a shared counter, all equally long; a barrier ends each round.
#include <stdatomic.h>

#include "rounds.h"

enum { ITERATIONS = 4 * THREADS };

static _Alignas(LINE_BYTES) atomic_uint next;
static pthread_barrier_t barrier;

__attribute__((constructor)) static void begin(void) {
  pthread_barrier_init(&barrier, NULL, THREADS);
}

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    while (atomic_fetch_add(&next, 1) < ITERATIONS)
      work(thread, SHORT_WORK);
    pthread_barrier_wait(&barrier);
    if (thread == 0)
      atomic_store(&next, 0);
    pthread_barrier_wait(&barrier);
  }
}

static struct path critical_path(void) { return path_handed_out(ITERATIONS, SHORT_WORK); }
