/* SPDX-License-Identifier: Apache-2.0 */
/* What the program ignores, told to the kernel where that matters. The engine has handlers of its
 * own for nearly all signals, so the kernel believes that none is ignored: it would keep children
 * that have ended until somebody waits for them, and a new image would ignore nothing. */
#ifndef SIGNAL_ACTIONS_H
#define SIGNAL_ACTIONS_H

#include <stdint.h>

/* Before the engine has its handlers. */
void signal_actions_init(void);
void signal_actions_continue_in_child(void);

/* Before and after each system call of the program. */
void signal_actions_before_call(void *drcontext, int number);
void signal_actions_after_call(int number, int64_t result);

#endif
