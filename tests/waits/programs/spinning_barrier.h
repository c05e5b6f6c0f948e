// SPDX-License-Identifier: Apache-2.0
//
// Makes every pthread barrier of a program one that polls a sense (-include spinning_barrier.h).
#ifndef SPINNING_BARRIER_H
#define SPINNING_BARRIER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdatomic.h>

#include "wait_while.h"

struct spinning_barrier {
  _Alignas(64) atomic_uint missing;
  _Alignas(64) atomic_uint sense;
  unsigned threads;
};

static inline int spinning_barrier_wait(struct spinning_barrier *barrier) {
  unsigned sense = atomic_load(&barrier->sense);
  if (atomic_fetch_sub(&barrier->missing, 1) == 1) {
    atomic_store(&barrier->missing, barrier->threads);
    atomic_store(&barrier->sense, !sense);
  } else {
    WAIT_WHILE(atomic_load(&barrier->sense) == sense);
  }
  return 0;
}

static inline int spinning_barrier_init(struct spinning_barrier *barrier, unsigned threads) {
  *barrier = (struct spinning_barrier){.missing = threads, .threads = threads};
  return 0;
}

#define pthread_barrier_t struct spinning_barrier
#define pthread_barrier_init(barrier, attributes, threads) spinning_barrier_init(barrier, threads)
#define pthread_barrier_wait(barrier) spinning_barrier_wait(barrier)
#define pthread_barrier_destroy(barrier) ((void)(barrier))

#endif
