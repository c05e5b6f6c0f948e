// SPDX-License-Identifier: Apache-2.0
//
// The barrier of the Splash suites without locks, as a macro writes it out where it is used: gcc
// -O3 peels the first look off the loop.
#include <stdatomic.h>

#include "rounds.h"

static struct {
  _Alignas(LINE_BYTES) atomic_int count;
  _Alignas(LINE_BYTES) atomic_int sense;
} barrier = {.count = THREADS};

#define BARRIER(local_sense)                                                                       \
  do {                                                                                             \
    (local_sense) = !(local_sense);                                                                \
    if (atomic_fetch_sub(&barrier.count, 1) == 1) {                                                \
      atomic_store(&barrier.count, THREADS);                                                       \
      atomic_store(&barrier.sense, (local_sense));                                                 \
    } else {                                                                                       \
      do {                                                                                         \
      } while (atomic_load(&barrier.sense) != (local_sense));                                      \
    }                                                                                              \
  } while (0)

static void run(unsigned thread) {
  int sense = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    work(thread, rotating_work(thread, round));
    BARRIER(sense);
  }
}

static struct path critical_path(void) { return path_rounds(rotating_work); }
