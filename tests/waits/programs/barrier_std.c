// SPDX-License-Identifier: Apache-2.0
//
// C++20's `std::barrier` (std_barrier.cpp).
#include "barrier_rounds.h"
#include "std_barrier.h"

_Static_assert(THREADS == STD_BARRIER_THREADS, "the barrier is for as many threads as there are");

static void barrier_wait(unsigned thread) {
  (void)thread;
  std_barrier_wait();
}
