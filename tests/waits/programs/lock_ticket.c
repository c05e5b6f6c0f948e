// SPDX-License-Identifier: Apache-2.0
//
// A ticket lock.
#include <stdatomic.h>

#include "lock_rounds.h"
#include "wait_while.h"

static _Alignas(LINE_BYTES) atomic_uint next_ticket;
static _Alignas(LINE_BYTES) atomic_uint now_served;

static void lock(unsigned thread) {
  (void)thread;
  unsigned ticket = atomic_fetch_add_explicit(&next_ticket, 1, memory_order_relaxed);
  WAIT_WHILE(atomic_load_explicit(&now_served, memory_order_acquire) != ticket);
}

static void unlock(unsigned thread) {
  (void)thread;
  unsigned served = atomic_load_explicit(&now_served, memory_order_relaxed);
  atomic_store_explicit(&now_served, served + 1, memory_order_release);
}
