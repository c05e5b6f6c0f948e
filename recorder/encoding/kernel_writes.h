/* SPDX-License-Identifier: Apache-2.0 */
/* What came into selected memory by other ways than the program's instructions, as events: what was
 * there when it was mapped, and what system calls wrote. */
#ifndef KERNEL_WRITES_H
#define KERNEL_WRITES_H

#include "thread.h"

/* Sends what selected memory in [start, start + bytes) holds now, as kernel_write events. */
void kernel_writes_send(struct thread *thread, uint64_t start, uint64_t bytes);

/* Likewise as initial_bytes events, without what is zero. */
void initial_bytes_send(struct thread *thread, uint64_t start, uint64_t bytes);

/* After a system call that did not fail. */
void kernel_writes_after_call(struct thread *thread, const struct system_call *call,
                              int64_t result);

#endif
