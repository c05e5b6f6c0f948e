/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread's encoder knows of each block: which one came after it, and where its slots' values
 * were and were going (docs/record-format.md). Known anew in each frame. */
#ifndef PREDICTOR_H
#define PREDICTOR_H

#include "arena.h"

#include <stdint.h>

/* One slot: where its value stands in the raw words, and its past. */
struct slot_state {
  uint64_t last;
  uint64_t stride;
  uint64_t displacement;
  uint64_t raw;
};

struct block_state {
  uint32_t epoch; /* the frame in which it was executed last */
  uint32_t next;  /* id of the block that came after it the last time */
  uint32_t id;
  uint32_t record_id;
  uint16_t instructions;
  uint16_t slots;
  uint16_t raw_words;
  uint16_t writes; /* of one execution (slot_writes) */
  struct slot_state slot[];
};

struct predictor {
  uint32_t epoch;
  struct block_state *previous; /* the last executed block */
  struct block_state *nothing;  /* stands before a frame's first block */
  uint64_t *entries;            /* by block id; 0 where this thread has not executed it */
  uint32_t capacity;
  struct arena arena;
};

void predictor_init(struct predictor *predictor);
void predictor_free(struct predictor *predictor);

/* Forgets everything, for a new frame. */
void predictor_begin_frame(struct predictor *predictor);

/* The state of a block that this thread has not executed before. */
struct block_state *predictor_add(struct predictor *predictor, uint32_t id);

/* An entry is the address of a block's state, and above it the number of the block's raw words:
 * where the next execution stands is then known before the state has come from memory. */
#define ENTRY_WORDS_SHIFT 48

static inline struct block_state *entry_state(uint64_t entry) {
  return (struct block_state *)(uintptr_t)(entry & ((1ull << ENTRY_WORDS_SHIFT) - 1));
}
static inline uint32_t entry_words(uint64_t entry) {
  return (uint32_t)(entry >> ENTRY_WORDS_SHIFT);
}

static inline struct block_state *predictor_state(struct predictor *predictor, uint32_t id) {
  if (id < predictor->capacity && predictor->entries[id] != 0)
    return entry_state(predictor->entries[id]);
  return predictor_add(predictor, id);
}

#endif
