// SPDX-License-Identifier: Apache-2.0
//
// A lock of many readers or one writer in a word, polled: readers are counted in it, a writer is a
// bit. All of the long work is under the writers' lock, which is never free.
#include <stdatomic.h>

#include "rounds.h"
#include "wait_while.h"

enum { WRITER = 1 << 16, READ_WORK = 20 };

static _Alignas(LINE_BYTES) atomic_uint word;

static void lock_shared(void) {
  for (;;) {
    if ((atomic_fetch_add(&word, 1) & WRITER) == 0)
      return;
    atomic_fetch_sub(&word, 1);
    WAIT_WHILE((atomic_load(&word) & WRITER) != 0);
  }
}

static void unlock_shared(void) { atomic_fetch_sub(&word, 1); }

static bool try_lock(void) {
  unsigned none = 0;
  return atomic_compare_exchange_strong(&word, &none, WRITER);
}

static void lock(void) { WAIT_WHILE(!try_lock()); }

static void unlock(void) { atomic_fetch_sub(&word, WRITER); }

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    lock_shared();
    work(thread, READ_WORK);
    unlock_shared();
    lock();
    work(thread, LONG_WORK);
    unlock();
  }
}

static struct path critical_path(void) {
  return path_in_turn((struct path){0}, ROUNDS * LONG_WORK);
}
