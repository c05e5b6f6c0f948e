/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a pipe, or of what comes from a socket: who reads it comes behind the last close of a
 * descriptor that could have written, or behind the process whose end closed that. */
#ifndef STREAM_ENDS_H
#define STREAM_ENDS_H

#include "thread.h"

/* Before a call that closes descriptors, or a side of a socket. */
void stream_ends_before_call(struct thread *thread, const struct system_call *call);

/* Of a call that has read nothing: whether what it reads has ended. Then the thread's record says
 * behind what it comes. */
void stream_end_after_read(struct thread *thread, const struct system_call *call);

#endif
