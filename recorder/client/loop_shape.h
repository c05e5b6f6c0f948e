/* SPDX-License-Identifier: Apache-2.0 */
/* Whether code leads from a block into a loop, perhaps its own, through nothing but what a thread
 * that waits does. It is a cheap look without values: most blocks are none that could wait, and
 * need no closer one. */
#ifndef LOOP_SHAPE_H
#define LOOP_SHAPE_H

#include "code_walk.h"

/* The first instruction of the block behind which there is nothing that ends waiting; NULL where
 * the block leads nowhere near. */
instr_t *loop_shape_first_harmless(instrlist_t *block);

/* Instructions of a block that read what the branch at its end may depend on. */
#define LOOKS_MAX 8u

struct deciding_looks {
  instr_t *instr[LOOKS_MAX];
  uint32_t count;
};

/* Those from `first` on. */
void loop_shape_find_looks(instrlist_t *block, const instr_t *first, struct deciding_looks *looks);

/* Whether such code leads from the block's end into a loop. */
bool loop_shape_is_near(struct code_walk *walk, instrlist_t *block);

#endif
