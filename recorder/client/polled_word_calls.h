/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts the calls of polled_words.h into instrumented code. */
#ifndef POLLED_WORD_CALLS_H
#define POLLED_WORD_CALLS_H

#include "block_plan.h"
#include "dr_api.h"

/* Inserts what an instruction of the block needs: before it where it may store to a polled word,
 * behind it likewise, and where it polls. The second says whether it has inserted a call, which may
 * move the position. */
void polled_word_calls_insert_before(void *drcontext, instrlist_t *block, instr_t *instr,
                                     const struct block_plan *plan);
bool polled_word_calls_insert_behind(void *drcontext, instrlist_t *block, instr_t *instr,
                                     instr_t *behind, const struct block_plan *plan);

#endif
