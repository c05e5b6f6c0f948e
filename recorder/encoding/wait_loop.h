/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting in what a thread executed: a loop whose rounds read the same addresses until another
 * thread has stored to one of them. How often it goes round depends on the machine that records, so
 * it is no work: the last round is encoded, the first one too where its instructions were not known
 * to poll, and how many there were besides.
 *
 * A round begins where a block is executed again with the same addresses. It may go through up to
 * 64 different blocks, call functions that yield or sleep, store to the thread's own stack, update
 * the word that it polls, and lock and unlock. Whether the loop has waited is decided when it is
 * left, by what the branch that left it depends on (wait_slice.h). */
#ifndef WAIT_LOOP_H
#define WAIT_LOOP_H

#include "wait_slice.h"

#include <stdbool.h>
#include <stdint.h>

struct encoder;
struct wait_loop;

#define HEAD_WORDS_MAX 16u

/* Whether a block can be where a round begins. */
static inline bool may_poll(const struct block_state *state) {
  return (state->flags & BLOCK_MAY_POLL) != 0;
}

/* The execution at `words` has the addresses of the block's last one, at `last`, not far before:
 * encodes the rounds that follow, if it is a loop. Returns where it stopped: before the last round,
 * or, where it may go on behind `to`, before what has to stand at the front of the next words; then
 * the encoder is waiting. `words` where there is no loop. */
const uint64_t *wait_loop_encode(struct encoder *encoder, const uint64_t *last,
                                 const uint64_t *words, const uint64_t *to, bool is_last);
/* The same where an execution follows of an instruction that is known to poll: it may be the first
 * one of a round that is left out. */
const uint64_t *wait_loop_at_look(struct encoder *encoder, const uint64_t *words,
                                  const uint64_t *to, bool is_last);
/* The same for the loop in which the encoder is waiting. */
const uint64_t *wait_loop_go_on(struct encoder *encoder, const uint64_t *words, const uint64_t *to,
                                bool is_last);

bool wait_loop_is_open(const struct wait_loop *loop);
void wait_loop_free(struct wait_loop *loop);

#endif
