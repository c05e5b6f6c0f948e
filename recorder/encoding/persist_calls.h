/* SPDX-License-Identifier: Apache-2.0 */
/* System calls by which a program makes mapped files durable, or changes how long they are. */
#ifndef PERSIST_CALLS_H
#define PERSIST_CALLS_H

#include "thread.h"

/* Sends the events of a persist_call, after the call. */
void persist_call_after(struct thread *thread, const struct system_call *call, int64_t result);

#endif
