/* SPDX-License-Identifier: Apache-2.0 */
/* Dense thread ids: who a kernel thread id and a pthread handle belong to. A thread gets its id
 * when its creator's system call returns or when it starts itself, whichever is seen first. */
#ifndef THREAD_IDENTITY_H
#define THREAD_IDENTITY_H

#include <stdint.h>

#define NO_THREAD UINT32_MAX

void thread_identities_init(void);
void thread_identities_exit(void);
/* In a forked child: what other threads were doing here is gone. */
void thread_identities_after_fork(void);

/* The id of a thread that starts. */
uint32_t thread_identity_starts(uint64_t kernel_tid);
/* The id of a thread that the caller has created. */
uint32_t thread_identity_created(uint64_t kernel_tid);

/* Waits until all threads that were created have started. The engine takes a thread that ends for
 * the last one, and ends the process, where another has not come to it yet. */
void thread_identities_await_starts(void);

/* pthread_t, from its creation until it is joined. */
void thread_handle_set(uint64_t handle, uint32_t thread);
uint32_t thread_handle_find(uint64_t handle); /* or NO_THREAD */

#endif
