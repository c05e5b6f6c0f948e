/* SPDX-License-Identifier: Apache-2.0 */
/* Executions that end before their block does: at a fault; where the engine makes code anew and
 * takes a thread out of the old, which goes on at the instruction where it was, in a block that
 * begins there; and where the process ends while the thread runs. */
#ifndef INTERRUPTIONS_H
#define INTERRUPTIONS_H

#include "thread.h"

void interruptions_init(void);
void interruptions_exit(void);

/* Marks in the code of a block, before `where`: our code that advances the position begins;
 * the execution stands in the buffer; what has to be done behind the program's last instruction is
 * done. */
void interruptions_mark_entry(void *drcontext, instrlist_t *block, instr_t *where);
void interruptions_mark_begun(void *drcontext, instrlist_t *block, instr_t *where);
void interruptions_mark_behind(void *drcontext, instrlist_t *block, instr_t *where);

/* The block that the thread was executing stopped before the instruction at `pc`. */
void interrupt_block(struct thread *thread, uint64_t pc);

#endif
