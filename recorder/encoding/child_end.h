/* SPDX-License-Identifier: Apache-2.0 */
/* How recorded children ended, as their parents' waits are told: only a parent learns it. */
#ifndef CHILD_END_H
#define CHILD_END_H

#include "thread.h"

/* After a wait4 or waitid. */
void child_end_after_wait(struct thread *thread, const struct system_call *call, int64_t result);

/* The thread comes behind the end of the process with this number. */
void child_end_send(struct thread *thread, uint64_t number);

#endif
