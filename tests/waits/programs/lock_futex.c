// SPDX-License-Identifier: Apache-2.0
//
// A lock as runtimes have it: free, taken, or taken with threads that may sleep for it, in one
// word.
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lock_rounds.h"

enum { FREE, TAKEN, AWAITED, SPINS = 100 };

static _Alignas(LINE_BYTES) atomic_uint word;

static void lock_contended(void) {
  unsigned seen = atomic_load(&word);
  for (unsigned spins = 0; spins < SPINS && seen == TAKEN; spins++) {
    __builtin_ia32_pause();
    seen = atomic_load(&word);
  }
  while (atomic_exchange(&word, AWAITED) != FREE)
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, AWAITED, NULL);
}

static void lock(unsigned thread) {
  (void)thread;
  unsigned seen = FREE;
  if (!atomic_compare_exchange_strong(&word, &seen, TAKEN))
    lock_contended();
}

static void unlock(unsigned thread) {
  (void)thread;
  if (atomic_exchange(&word, FREE) == AWAITED)
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
}
