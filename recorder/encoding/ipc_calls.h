/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that wait for messages of queues, semaphores (System V) or locks of files, of
 * threads that take turns. They are tried without waiting, and again when others may have made them
 * possible. */
#ifndef IPC_CALLS_H
#define IPC_CALLS_H

#include "baton_calls.h"

/* Of the thread's system call; false where it is none of these. */
bool ipc_call(struct thread *thread, const struct system_call *call, bool is_alone,
              enum baton_call *how, int64_t *result);

#endif
