/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that wait for signals, of threads that take turns: without the baton, and without
 * waiting in the kernel. Their time limits follow the estimated clocks. */
#ifndef SIGNAL_CALLS_H
#define SIGNAL_CALLS_H

#include "baton_calls.h"

/* A mask of signals in the program's memory, as calls pass it; false where the kernel would refuse
 * it. */
bool signal_mask_read(uint64_t address, uint64_t bytes, uint64_t *mask);

/* Of the thread's system call; false where it is none of these. */
bool signal_call(struct thread *thread, const struct system_call *call, bool is_alone,
                 enum baton_call *how, int64_t *result);

#endif
