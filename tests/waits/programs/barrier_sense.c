// SPDX-License-Identifier: Apache-2.0
//
// A central barrier with a sense that each round reverses.
#include <stdatomic.h>

#include "barrier_rounds.h"
#include "wait_while.h"

static _Alignas(LINE_BYTES) atomic_uint missing = THREADS;
static _Alignas(LINE_BYTES) atomic_bool sense;
static _Thread_local bool own_sense;

static void barrier_wait(unsigned thread) {
  (void)thread;
  own_sense = !own_sense;
  if (atomic_fetch_sub(&missing, 1) == 1) {
    atomic_store(&missing, THREADS);
    atomic_store(&sense, own_sense);
  } else {
    WAIT_WHILE(atomic_load(&sense) != own_sense);
  }
}
