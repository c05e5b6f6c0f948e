/* SPDX-License-Identifier: Apache-2.0 */
/* Where the engine stops a thread in a blocking write to a pipe or socket, the kernel ends the call
 * with what it has transferred by then; without the recorder it would have gone on. So would a
 * receive of a whole buffer. Such a call is made again for the rest. */
#ifndef WHOLE_TRANSFERS_H
#define WHOLE_TRANSFERS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Before each system call; true: it transfers the rest of a call that has begun. */
bool whole_transfer_before(void *drcontext, struct thread *thread, int number);
/* After each; true: the rest follows, and the call has not ended. Else `result` is its own. */
bool whole_transfer_after(void *drcontext, struct thread *thread, int number, int64_t *result);

#endif
