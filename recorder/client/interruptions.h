/* SPDX-License-Identifier: Apache-2.0 */
/* Where the engine may stop a thread in instrumented code, and what it finds there of the program's
 * state (interrupted_execution.h). */
#ifndef INTERRUPTIONS_H
#define INTERRUPTIONS_H

#include "dr_api.h"

void interruptions_init(void);
void interruptions_exit(void);

/* Marks in the code of a block, before `where`: our code that advances the position begins;
 * the execution stands in the buffer; what has to be done behind the program's last instruction is
 * done. */
void interruptions_mark_entry(void *drcontext, instrlist_t *block, instr_t *where);
void interruptions_mark_begun(void *drcontext, instrlist_t *block, instr_t *where);
void interruptions_mark_behind(void *drcontext, instrlist_t *block, instr_t *where);

#endif
