/* SPDX-License-Identifier: Apache-2.0 */
/* What decides whether a loop goes on: a static slice over the path of its rounds. Memory that the
 * loop itself writes on the thread's own stack is treated like a register; every other word that
 * it reads may be another thread's. */
#ifndef WAIT_SLICE_H
#define WAIT_SLICE_H

#include "block_flow.h"
#include "predictor.h"

#include <stdint.h>

#define SLICE_LOCALS 36u
#define SLICE_WORDS 36u

/* A set of values' origins: registers and locals at the start of a round, shared words, and whether
 * anything differs from round to round without a shared word's doing. */
typedef unsigned __int128 origin_set;

/* A range of addresses that only this thread uses. */
struct own_range {
  uint64_t low, high;
};

struct shared_word {
  uint64_t address;
  uint64_t pc; /* of an instruction that reads it */
  bool is_own; /* on the thread's own stack */
};

struct wait_slice {
  struct predictor *predictor; /* has the blocks' flows */
  struct own_range own[2];     /* the stack, and what the thread pointer points to */
  uint64_t local[SLICE_LOCALS];
  uint32_t locals;
  struct shared_word word[SLICE_WORDS];
  uint32_t words;
  bool has_failed; /* more than it can hold, or effects that are not followed */
  /* By register or local: what its value at the end of a round is made of, and whether a round
   * changes it. */
  origin_set end[FLOW_REGISTERS + SLICE_LOCALS];
  bool is_changed[FLOW_REGISTERS + SLICE_LOCALS];
  origin_set start[FLOW_REGISTERS + SLICE_LOCALS]; /* at the start of a round but the first */
  origin_set branches;                             /* what any branch of the rounds depends on */
};

/* Whether it lies on the stack or in the control block whose ranges these are, and no other thread
 * is known to poll it or to store there. */
bool is_own_address(const struct own_range own[2], uint64_t address);

void wait_slice_begin(struct wait_slice *slice, struct predictor *predictor,
                      const struct own_range own[2]);

/* First all different rounds are looked at, [from, to) each, for what they write; then all of them
 * again for what depends on what. */
void wait_slice_look(struct wait_slice *slice, const uint64_t *from, const uint64_t *to);
void wait_slice_add(struct wait_slice *slice, const uint64_t *from, const uint64_t *to);
/* All rounds have been added. */
void wait_slice_close(struct wait_slice *slice);

/* What the last branch of the path [from, to) depends on, which begins as a round does. */
origin_set wait_slice_exit(struct wait_slice *slice, const uint64_t *from, const uint64_t *to);

/* What those branches of a whole round [from, to) depend on, together, which no count and no clock
 * decides. */
origin_set wait_slice_steady(struct wait_slice *slice, const uint64_t *from, const uint64_t *to);

/* Whether word `index` is in the set. */
bool origins_have_word(origin_set origins, uint32_t index);
/* Whether another thread's word is among them: the thread's own stack counts only where there is
 * nothing else (an MCS lock's node may lie there). */
bool origins_have_foreign_word(const struct wait_slice *slice, origin_set origins);
/* Whether it holds what counts rounds or tells the time. */
bool origins_vary(origin_set origins);

#endif
