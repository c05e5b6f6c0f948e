// SPDX-License-Identifier: Apache-2.0
//
// A central barrier that waits by C++20's `atomic::wait` (atomic_wait.cpp).
#include "atomic_wait.h"
#include "barrier_rounds.h"

static void barrier_wait(unsigned thread) {
  (void)thread;
  atomic_wait_barrier(THREADS);
}
