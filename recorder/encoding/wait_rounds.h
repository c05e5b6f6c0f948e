/* SPDX-License-Identifier: Apache-2.0 */
/* What the rounds of a loop that may be waiting have in common: which shapes they have had, by
 * which branches they went from block to block, what they read and updated. */
#ifndef WAIT_ROUNDS_H
#define WAIT_ROUNDS_H

#include "wait_slice.h"

#include <stdbool.h>
#include <stdint.h>

#define SHAPES_MAX 64u
#define STORED_WORDS_MAX (1u << 16)
#define EDGES_MAX 1024u /* a power of two */
#define LOADS_MAX 512u
#define UPDATES_MAX 8u

/* A round as it was executed, without what only says which stores were seen. */
struct shape {
  uint32_t first, count; /* in `stored` */
  uint32_t instructions;
  uint64_t reads; /* a digest of the shared words that it reads, in their order */
};

struct wait_rounds {
  struct shape shape[SHAPES_MAX];
  uint32_t shapes;
  uint64_t stored[STORED_WORDS_MAX];
  uint32_t stored_words;
  uint64_t edge[EDGES_MAX];
  uint32_t edges;
  uint64_t load[LOADS_MAX]; /* those of the first round are the words the loop may wait for */
  uint32_t loads, first_loads;
  uint32_t widening; /* rounds that read shared words which no round before has read */
  uint64_t update[UPDATES_MAX];
  uint32_t updates;
};

/* The shape of the round [from, to), which is `newest` or another one; SHAPES_MAX where it cannot
 * be one of this loop. */
uint32_t wait_rounds_shape(struct wait_rounds *rounds, uint32_t newest, const struct own_range *own,
                           const uint64_t *from, const uint64_t *to);
/* Whether a round has had this shape, */
bool wait_rounds_have_shape(const struct wait_rounds *rounds, const uint64_t *from,
                            const uint64_t *to);
/* gone from one block to the other, */
bool wait_rounds_have_edge(const struct wait_rounds *rounds, uint32_t from, uint32_t to);
/* or read this word; the first one. */
bool wait_rounds_have_load(const struct wait_rounds *rounds, uint64_t address);
bool wait_rounds_began_with(const struct wait_rounds *rounds, uint64_t address);

/* Whether the round reads a word that another thread could change: one that it does not store to
 * itself. A loop that counts in memory reads only what it stores. */
bool round_reads_what_it_does_not_store(const uint64_t *from, const uint64_t *to);

#endif
