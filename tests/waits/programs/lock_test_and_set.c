// SPDX-License-Identifier: Apache-2.0
//
// A test-and-set lock: each look is an exchange.
#include <stdatomic.h>

#include "lock_rounds.h"
#include "wait_while.h"

static _Alignas(LINE_BYTES) atomic_flag is_held = ATOMIC_FLAG_INIT;

static void lock(unsigned thread) {
  (void)thread;
  WAIT_WHILE(atomic_flag_test_and_set_explicit(&is_held, memory_order_acquire));
}

static void unlock(unsigned thread) {
  (void)thread;
  atomic_flag_clear_explicit(&is_held, memory_order_release);
}
