/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that wait for descriptors or children, of threads that take turns: whether they
 * would wait is asked at the thread's turns, without waiting in the kernel. So it depends on the
 * order of the turns alone when they go on, where only the process itself has the other ends. */
#ifndef READINESS_H
#define READINESS_H

#include "baton_calls.h"

/* Of the thread's system call; false where it is none of these. */
bool readiness_call(struct thread *thread, const struct system_call *call, bool is_alone,
                    enum baton_call *how, int64_t *result);

#endif
