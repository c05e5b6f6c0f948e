/* SPDX-License-Identifier: Apache-2.0 */
/* Executions that end before their block does: at a fault; where the engine makes code anew and
 * takes a thread out of the old, which goes on at the instruction where it was, in a block that
 * begins there; and where the process ends while the thread runs. */
#ifndef INTERRUPTED_EXECUTION_H
#define INTERRUPTED_EXECUTION_H

#include "thread.h"

/* The block that the thread was executing stopped before the instruction at `pc`. */
void interrupt_block(struct thread *thread, uint64_t pc);

/* Whether that needs no room that only the thread itself could make. */
bool interruption_has_room(const struct thread *thread);

#endif
