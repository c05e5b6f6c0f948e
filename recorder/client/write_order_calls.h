/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts the calls of write_order.h into instrumented code. */
#ifndef WRITE_ORDER_CALLS_H
#define WRITE_ORDER_CALLS_H

#include "block_plan.h"
#include "dr_api.h"

/* Whether the block has to end behind `instr`: a write or a flush whose order is kept. */
bool write_order_calls_end_block_behind(instr_t *instr);

/* Inserts the call before the instruction of the plan at which the insertion stands. */
void write_order_call_insert(void *drcontext, instrlist_t *block, instr_t *instr,
                             const struct block_plan *plan);

#endif
