/* SPDX-License-Identifier: Apache-2.0 */
/* Which wake ended which wait. The kernel does not say, so each object's wakes are kept in the
 * order of the process clock, and a wait that returns takes the oldest one that it can have been
 * woken by. */
#ifndef WAKE_PAIRING_H
#define WAKE_PAIRING_H

#include <stdbool.h>
#include <stdint.h>

#define WAKE_UNKNOWN 0
#define WAKE_ALL UINT32_MAX

void wake_pairing_init(void);
void wake_pairing_exit(void);
void wake_pairing_after_fork(void);

/* A thread begins to wait at `object`: the clock there. */
uint64_t wait_begins(uint64_t object);
/* It returns: the clock of the wake that ended the wait which began at `begun`, or WAKE_UNKNOWN;
 * none is looked for where it was not woken. */
uint64_t wait_ends(uint64_t object, uint64_t begun, bool is_woken);
/* Wakes up to `count` threads that wait at `object` (WAKE_ALL: all of them); returns the clock. */
uint64_t wake_happens(uint64_t object, uint32_t count);
/* Likewise wakes one thread, but none that an earlier signal already wakes; without a waiter the
 * signal is lost. */
uint64_t signal_happens(uint64_t object);
/* Afterwards it is known that the wake with this clock woke just `count`. */
void wake_counted(uint64_t object, uint64_t clock, uint32_t count);

/* Semaphores: tokens are never lost. A semaphore that was not seen before holds `value` of them. */
void semaphore_initialised(uint64_t object, uint32_t value);
uint64_t semaphore_posts(uint64_t object, uint32_t value_before);
/* The clock of the post whose token is taken, or WAKE_UNKNOWN where it was there from the start. */
uint64_t semaphore_takes(uint64_t object);
void semaphore_seen(uint64_t object, uint32_t value);

/* Barriers: `participants` once it is known; an arrival's place among all of them. */
void barrier_initialised(uint64_t object, uint32_t participants);
void barrier_arrives(uint64_t object, uint32_t *participants, uint64_t *generation);

/* Whether all have arrived that it is for. */
bool barrier_has_opened(uint64_t object, uint64_t generation);

/* Spin locks: whether the unlock that follows ends a lock (initialising one is an unlock too, and
 * the same function). */
void spin_lock_taken(uint64_t object);
bool spin_lock_released(uint64_t object);

#endif
