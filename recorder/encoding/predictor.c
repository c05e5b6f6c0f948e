/* SPDX-License-Identifier: Apache-2.0 */
#include "predictor.h"

#include "code_table.h"
#include "platform.h"

#include <string.h>

#define CAPACITY_MIN (1u << 14)

void predictor_init(struct predictor *predictor) {
  memset(predictor, 0, sizeof(*predictor));
  predictor->nothing = arena_allocate(&predictor->arena, sizeof(struct block_state));
}

void predictor_free(struct predictor *predictor) {
  if (predictor->capacity != 0)
    pages_free(predictor->entries, predictor->capacity * sizeof(predictor->entries[0]));
  arena_free(&predictor->arena);
}

void predictor_begin_frame(struct predictor *predictor) {
  predictor->epoch++;
  predictor->previous = predictor->nothing;
  predictor->nothing->next = 0;
}

static void grow(struct predictor *predictor, uint32_t id) {
  uint32_t capacity = predictor->capacity == 0 ? CAPACITY_MIN : predictor->capacity;
  while (capacity <= id)
    capacity *= 2;
  uint64_t *entries = pages_allocate(capacity * sizeof(entries[0]));
  if (predictor->capacity != 0) {
    memcpy(entries, predictor->entries, predictor->capacity * sizeof(entries[0]));
    pages_free(predictor->entries, predictor->capacity * sizeof(entries[0]));
  }
  predictor->entries = entries;
  predictor->capacity = capacity;
}

struct block_state *predictor_add(struct predictor *predictor, uint32_t id) {
  if (id >= predictor->capacity)
    grow(predictor, id);
  const struct block *block = code_table_get(id);
  /* Of no words, it would be met again and again. */
  require(block->raw_words != 0, "an execution of a block that there is not");
  struct block_state *state =
      arena_allocate(&predictor->arena, sizeof(*state) + block->slots * sizeof(struct slot_state));
  state->id = id;
  state->record_id = code_table_record_id(id);
  state->instructions = block->instructions;
  state->slots = block->slots;
  state->raw_words = block->raw_words;
  state->writes = block_writes(block);
  for (uint32_t i = 0; i < block->slots; i++) {
    state->slot[i].displacement = (uint64_t)block->slot[i].displacement;
    state->slot[i].raw = block->slot[i].raw;
  }
  predictor->entries[id] =
      (uint64_t)block->raw_words << ENTRY_WORDS_SHIFT | (uint64_t)(uintptr_t)state;
  return state;
}
