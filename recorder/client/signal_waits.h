/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for signals that the program blocks (sigwait, sigtimedwait, sigwaitinfo). The kernel does
 * not block them, so it gives them to the engine in whichever thread it likes, and the engine keeps
 * them. A wait is made in turns: each waits a moment in the kernel, and then takes what was kept.
 */
#ifndef SIGNAL_WAITS_H
#define SIGNAL_WAITS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Before each system call; true: it is another turn of a wait that has begun. */
bool signal_wait_before(void *drcontext, struct thread *thread, int number);
/* After each; true: there is another turn, and the call has not ended. Else `result` is its own. */
bool signal_wait_after(void *drcontext, struct thread *thread, int number, int64_t *result);

#endif
