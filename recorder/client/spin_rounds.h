/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that only wait, in what a thread executed: one round is encoded, and how many more there
 * were. */
#ifndef SPIN_ROUNDS_H
#define SPIN_ROUNDS_H

#include "code_table.h"
#include "encoder.h"

static inline bool may_spin(const struct block_state *state) {
  return (state->flags & (BLOCK_HAS_PAUSE | BLOCK_REPEATS_ITSELF)) != 0;
}

/* Encodes the loop that may begin at `words`. Returns where it stopped: behind the loop, or, where
 * it may go on behind `to`, before its last round; then the encoder is spinning. NULL where there
 * is no loop. */
const uint64_t *spin_rounds_encode(struct encoder *encoder, const uint64_t *words,
                                   const uint64_t *to, bool is_last);

#endif
