// SPDX-License-Identifier: Apache-2.0
//
// A latch of C++20 for each round (std_latch.cpp).
#include "barrier_rounds.h"
#include "std_latch.h"

_Static_assert(THREADS == STD_LATCH_THREADS, "a latch is for as many threads as there are");

static void barrier_wait(unsigned thread) {
  (void)thread;
  static _Thread_local unsigned round;
  std_latch_arrive_and_wait(round++);
}
