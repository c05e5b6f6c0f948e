/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread consumed of another's, in any process of the tree: the bytes of a pipe or of
 * sockets that are connected, the count of an eventfd, a message, a signal. In a replay it waits
 * for the call that supplied them, blocked or not when it was recorded. */
#ifndef SUPPLIES_H
#define SUPPLIES_H

#include "thread.h"

/* At the end, and in a forked child. */
void supplies_exit(void);

/* Shortly before the kernel makes a call. */
void supplies_before(struct thread *thread, struct system_call *call);
/* Behind each system call of a thread that has its turn: before its event and behind it. */
void supplies_consumed(struct thread *thread, const struct system_call *call, int64_t result);
void supplies_made(struct thread *thread, const struct system_call *call, int64_t result);

/* A signal is about to be handled. */
void supplies_signal(struct thread *thread, uint32_t number);

#endif
