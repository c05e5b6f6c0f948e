/* SPDX-License-Identifier: Apache-2.0 */
/* Time as a program sees it whose threads take turns: it follows their estimated clocks. Every
 * recording begins at the same time. */
#ifndef VIRTUAL_TIME_H
#define VIRTUAL_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct thread;
struct system_call;

/* Makes a call that tells the time or sleeps; false where it is none. */
bool virtual_time_call(struct thread *thread, const struct system_call *call, int64_t *result);

/* What `rdtsc` reads. */
uint64_t virtual_time_stamp(struct thread *thread);

/* The place of the thread's clock so many ns from now, or at such a time of a clock of the
 * program. */
uint64_t virtual_time_in(struct thread *thread, uint64_t ns);
uint64_t virtual_time_at(struct thread *thread, uint64_t ns, int clock);

/* The monotonic clock. */
uint64_t virtual_time_now_ns(struct thread *thread);

/* Until the place. */
uint64_t virtual_time_left_ns(struct thread *thread, uint64_t until);

/* Of a struct timespec in the program's memory; whether the kernel would take it. */
bool virtual_time_read(uint64_t address, uint64_t *ns);
bool virtual_time_is_valid(uint64_t address);

/* Where a limit ends that stands there, or for ever where there is none (address 0); false where
 * the kernel would refuse it. */
bool virtual_time_limit(struct thread *thread, uint64_t address, uint64_t *until);

#endif
