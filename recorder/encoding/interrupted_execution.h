/* SPDX-License-Identifier: Apache-2.0 */
/* Executions that end before their block does: at a fault, and where a thread writes to code of its
 * own, which goes on at the next instruction, in a block that begins there. */
#ifndef INTERRUPTED_EXECUTION_H
#define INTERRUPTED_EXECUTION_H

#include "thread.h"

/* The block that the thread was executing stopped before the instruction at `pc`. */
void interrupt_block(struct thread *thread, uint64_t pc);

#endif
