/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts the calls of values.h into instrumented code. */
#ifndef VALUE_CALLS_H
#define VALUE_CALLS_H

#include "block_plan.h"
#include "dr_api.h"

/* Inserts the call after the instruction of the plan at which the insertion stands (before it,
 * where it is a call: control does not come behind it). `behind` is what followed it in the
 * program. False where it writes nothing. */
bool value_call_insert(void *drcontext, instrlist_t *block, instr_t *instr, instr_t *behind,
                       const struct block_plan *plan);

/* Whether the block has to end behind `instr`, so that a write of any length is its last. */
bool value_calls_end_block_behind(instr_t *instr);

#endif
