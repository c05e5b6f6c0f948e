/* SPDX-License-Identifier: Apache-2.0 */
/* Futex calls that no synchronisation function stands for: waits and wakes of the program's own. */
#ifndef FUTEX_H
#define FUTEX_H

#include "thread.h"

void futex_before(struct thread *thread, struct system_call *call);
void futex_after(struct thread *thread, struct system_call *call, int64_t result);

#endif
