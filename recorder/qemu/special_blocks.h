/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks before which more is to do than to note that they are executed: synchronisation functions
 * begin or have returned there, a signal's handler or the region of interest begins, or the engine
 * executes an instruction for the second time. */
#ifndef SPECIAL_BLOCKS_H
#define SPECIAL_BLOCKS_H

#include "guest.h"
#include "plan.h"

void special_blocks_init(void);
void special_blocks_after_fork(void);

/* A function of this name begins at the address. */
void special_block_is_function(uint64_t address, const char *name, bool may_synchronise);
/* A signal's handler begins there. */
void special_block_is_handler(uint64_t address);

/* Whether a block has to begin there. */
bool special_block_begins_at(uint64_t address);
/* Says of a plan what is special about its block, whose first instruction is `word`. */
void special_block_describe(struct plan *plan, uint32_t word);

void special_block_begins(struct guest *guest, const struct plan *plan);

/* A handler has returned. */
void special_block_handler_returns(struct guest *guest);

#endif
