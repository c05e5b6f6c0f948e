/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what the program's instructions leave in selected memory (--values): called by instrumented
 * code right after each instruction that writes. */
#ifndef VALUES_H
#define VALUES_H

#include "block_plan.h"
#include "dr_api.h"
#include "thread.h"

/* Inserts the call after the instruction of the plan at which the insertion stands (before it,
 * where it is a call: control does not come behind it). `behind` is what followed it in the
 * program. False where it writes nothing. */
bool values_insert(void *drcontext, instrlist_t *block, instr_t *instr, instr_t *behind,
                   const struct block_plan *plan);

/* Whether the block has to end behind `instr`, so that a write of any length is its last. */
bool values_end_block_behind(instr_t *instr);

/* What a synchronisation function, whose instructions are not recorded, wrote. */
void values_send_of_call(struct thread *thread);

#endif
