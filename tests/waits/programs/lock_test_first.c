// SPDX-License-Identifier: Apache-2.0
//
// A test-and-test-and-set lock: an exchange only where a load has seen it free.
#include <stdatomic.h>

#include "lock_rounds.h"
#include "wait_while.h"

static _Alignas(LINE_BYTES) atomic_bool is_held;

static void lock(unsigned thread) {
  (void)thread;
  WAIT_WHILE(atomic_load_explicit(&is_held, memory_order_relaxed) ||
             atomic_exchange_explicit(&is_held, true, memory_order_acquire));
}

static void unlock(unsigned thread) {
  (void)thread;
  atomic_store_explicit(&is_held, false, memory_order_release);
}
