/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of recorded threads: each becomes an event, and what some of them do to mappings,
 * threads, files and waiting becomes events of its own. */
#ifndef SYSTEM_CALLS_H
#define SYSTEM_CALLS_H

#include "thread.h"

/* What it is: `call` has its number and arguments. */
void system_call_identify(struct system_call *call);
/* Before the kernel has it. */
void system_call_begins(struct thread *thread, struct system_call *call);
/* `result` as the kernel returns it: negative errors. */
void system_call_ends(struct thread *thread, struct system_call *call, int64_t result);

#endif
