// SPDX-License-Identifier: Apache-2.0
//
// The queue lock of Mellor-Crummey and Scott: each thread polls a word of its own.
#include <stdatomic.h>

#include "lock_rounds.h"
#include "wait_while.h"

struct place {
  _Alignas(LINE_BYTES) _Atomic(struct place *) next;
  atomic_bool must_wait;
};

static struct place places[THREADS];
static _Alignas(LINE_BYTES) _Atomic(struct place *) tail;

static void lock(unsigned thread) {
  struct place *own = &places[thread];
  atomic_store_explicit(&own->next, NULL, memory_order_relaxed);
  struct place *before = atomic_exchange(&tail, own);
  if (before == NULL)
    return;
  atomic_store_explicit(&own->must_wait, true, memory_order_relaxed);
  atomic_store_explicit(&before->next, own, memory_order_release);
  WAIT_WHILE(atomic_load_explicit(&own->must_wait, memory_order_acquire));
}

static void unlock(unsigned thread) {
  struct place *own = &places[thread];
  if (atomic_load_explicit(&own->next, memory_order_acquire) == NULL) {
    struct place *expected = own;
    if (atomic_compare_exchange_strong(&tail, &expected, NULL))
      return;
    WAIT_WHILE(atomic_load_explicit(&own->next, memory_order_acquire) == NULL);
  }
  struct place *next = atomic_load_explicit(&own->next, memory_order_acquire);
  atomic_store_explicit(&next->must_wait, false, memory_order_release);
}
