/* SPDX-License-Identifier: Apache-2.0 */
#include "process_lock.h"

#include "raw_system_call.h"

#include <stdbool.h>
#include <sys/syscall.h>

#define SPINS_MAX 100

void process_lock_take(int32_t *lock, int32_t process) {
  for (int spins = 0;; spins++) {
    int32_t nobody = 0;
    if (__atomic_compare_exchange_n(lock, &nobody, process, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      return;
    if (spins >= SPINS_MAX)
      raw_system_call(SYS_sched_yield, 0, 0, 0);
  }
}

void process_lock_give(int32_t *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

void process_lock_forget(int32_t *lock, int32_t process) {
  __atomic_compare_exchange_n(lock, &process, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
