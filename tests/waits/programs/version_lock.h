// SPDX-License-Identifier: Apache-2.0
//
// Locks by a version: odd while a thread changes what they protect, and greater with each change.
// Readers take nothing: they read again if the version was odd or has changed meanwhile.
#ifndef VERSION_LOCK_H
#define VERSION_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "wait_while.h"
#include "work.h"

typedef _Atomic uint64_t version_lock;

// The version at a moment when nobody has the lock.
static inline uint64_t version_read(version_lock *lock) {
  uint64_t version;
  WAIT_WHILE((version = atomic_load_explicit(lock, memory_order_acquire)) % 2 != 0);
  return version;
}

static inline bool version_is_still(version_lock *lock, uint64_t version) {
  atomic_thread_fence(memory_order_acquire);
  return atomic_load_explicit(lock, memory_order_relaxed) == version;
}

static inline bool version_try_lock(version_lock *lock, uint64_t version) {
  return atomic_compare_exchange_strong_explicit(lock, &version, version + 1, memory_order_acquire,
                                                 memory_order_relaxed);
}

static inline void version_lock_any(version_lock *lock) {
  while (!version_try_lock(lock, version_read(lock)))
    ;
}

static inline void version_unlock(version_lock *lock) {
  uint64_t version = atomic_load_explicit(lock, memory_order_relaxed);
  atomic_store_explicit(lock, version + 1, memory_order_release);
}

#endif
