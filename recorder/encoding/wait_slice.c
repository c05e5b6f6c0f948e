/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_slice.h"

#include "polled_words.h"
#include "raw_words.h"
#include "record_format.h"
#include "wait_path.h"

#include <string.h>

#define PLACES (FLOW_REGISTERS + SLICE_LOCALS)
#define FIRST_WORD PLACES
#define VARIES_BIT 127u
#define LOCAL_BYTES 4u
#define NO_PLACE (-1)

/* What a register or local holds: what it is made of, and of which place at the round's start it
 * is a copy, if it is one. */
struct value {
  origin_set origins;
  int copy_of;
};

struct state {
  struct value place[PLACES];
  origin_set last_branch, branches;
  origin_set steady; /* of those branches that nothing which varies decides */
  bool is_written[PLACES];
};

static origin_set bit(uint32_t place) { return (origin_set)1 << place; }

bool origins_have_word(origin_set origins, uint32_t index) {
  return (origins & bit(FIRST_WORD + index)) != 0;
}

bool origins_have_foreign_word(const struct wait_slice *slice, origin_set origins) {
  for (uint32_t i = 0; i < slice->words; i++) {
    if (origins_have_word(origins, i) && !slice->word[i].is_own)
      return true;
  }
  return false;
}

bool origins_vary(origin_set origins) { return (origins & bit(VARIES_BIT)) != 0; }

bool is_own_address(const struct own_range own[2], uint64_t address) {
  bool lies_there = (address >= own[0].low && address < own[0].high) ||
                    (address >= own[1].low && address < own[1].high);
  return lies_there && !polled_word_is_shared(address);
}

void wait_slice_begin(struct wait_slice *slice, struct predictor *predictor,
                      const struct own_range own[2]) {
  memset(slice, 0, sizeof(*slice));
  slice->predictor = predictor;
  memcpy(slice->own, own, sizeof(slice->own));
}

static int find_local(const struct wait_slice *slice, uint64_t address) {
  for (uint32_t i = 0; i < slice->locals; i++) {
    if (slice->local[i] == address)
      return (int)i;
  }
  return NO_PLACE;
}

static bool reads_memory(const struct slot *slot) {
  return slot->kind == SLOT_LOAD || slot->kind == SLOT_UPDATE;
}

static bool writes_memory(const struct slot *slot) {
  return slot->kind == SLOT_STORE || slot->kind == SLOT_UPDATE;
}

void wait_slice_look(struct wait_slice *slice, const uint64_t *from, const uint64_t *to) {
  while (from < to) {
    if (word_is_marker(*from)) {
      from += path_step(from, to);
      continue;
    }
    const struct block *block = code_table_get((uint32_t)*from);
    uint32_t executed = raw_words_executed(from, to);
    for (uint32_t i = 0; i < block->slots && block->slot[i].instruction < executed; i++) {
      const struct slot *slot = &block->slot[i];
      uint64_t address = path_slot_value(slot, from), end = address + slot->bytes;
      if (!writes_memory(slot) || !is_own_address(slice->own, address))
        continue;
      for (uint64_t at = address & ~(uint64_t)(LOCAL_BYTES - 1); at < end; at += LOCAL_BYTES) {
        if (find_local(slice, at) != NO_PLACE)
          continue;
        if (slice->locals == SLICE_LOCALS) {
          slice->has_failed = true;
          return;
        }
        slice->local[slice->locals++] = at;
      }
    }
    from += block->raw_words;
  }
}

static origin_set word_origin(struct wait_slice *slice, uint64_t address, uint64_t pc) {
  for (uint32_t i = 0; i < slice->words; i++) {
    if (slice->word[i].address == address)
      return bit(FIRST_WORD + i);
  }
  if (slice->words == SLICE_WORDS) {
    slice->has_failed = true;
    return 0;
  }
  bool is_own = is_own_address(slice->own, address);
  slice->word[slice->words] = (struct shared_word){address, pc, is_own};
  return bit(FIRST_WORD + slice->words++);
}

/* What an access of `bytes` at `address` reads. */
static struct value load(struct wait_slice *slice, const struct state *state, uint64_t address,
                         uint32_t bytes, uint64_t pc) {
  struct value value = {0, NO_PLACE};
  bool is_first = true;
  for (uint64_t at = address & ~(uint64_t)(LOCAL_BYTES - 1); at < address + bytes;
       at += LOCAL_BYTES) {
    int local = find_local(slice, at);
    struct value part = {0, NO_PLACE};
    if (local == NO_PLACE)
      part.origins = word_origin(slice, address, pc);
    else
      part = state->place[FLOW_REGISTERS + (uint32_t)local];
    value.copy_of = is_first || part.copy_of == value.copy_of ? part.copy_of : NO_PLACE;
    value.origins |= part.origins;
    is_first = false;
  }
  return value;
}

static void store(struct wait_slice *slice, struct state *state, uint64_t address, uint32_t bytes,
                  struct value value) {
  for (uint64_t at = address & ~(uint64_t)(LOCAL_BYTES - 1); at < address + bytes;
       at += LOCAL_BYTES) {
    int local = find_local(slice, at);
    if (local == NO_PLACE)
      continue;
    uint32_t place = FLOW_REGISTERS + (uint32_t)local;
    bool is_whole = at >= address && at + LOCAL_BYTES <= address + bytes;
    if (!is_whole)
      value = (struct value){value.origins | state->place[place].origins, NO_PLACE};
    state->place[place] = value;
    state->is_written[place] = true;
  }
}

static origin_set memory_origins(struct wait_slice *slice, const struct state *state,
                                 const struct block *block, const struct flow_instruction *flow,
                                 const uint64_t *words, uint64_t pc) {
  origin_set origins = 0;
  for (uint32_t i = flow->first_slot; i < flow->first_slot + flow->slots; i++) {
    const struct slot *slot = &block->slot[i];
    if (reads_memory(slot))
      origins |= load(slice, state, path_slot_value(slot, words), slot->bytes, pc).origins;
  }
  return origins;
}

static struct value input_of(struct wait_slice *slice, const struct state *state,
                             const struct block *block, const struct flow_instruction *flow,
                             const uint64_t *words, uint64_t pc) {
  struct value value = {0, NO_PLACE};
  uint32_t inputs = 0;
  for (uint32_t place = 0; place < FLOW_REGISTERS; place++) {
    if ((flow->reads >> place & 1) == 0)
      continue;
    value.origins |= state->place[place].origins;
    value.copy_of = state->place[place].copy_of;
    inputs++;
  }
  for (uint32_t i = flow->first_slot; i < flow->first_slot + flow->slots; i++) {
    const struct slot *slot = &block->slot[i];
    if (!reads_memory(slot))
      continue;
    struct value loaded = load(slice, state, path_slot_value(slot, words), slot->bytes, pc);
    value.origins |= loaded.origins;
    value.copy_of = loaded.copy_of;
    inputs++;
  }
  if (flow->kind != FLOW_COPIES || inputs != 1)
    value.copy_of = NO_PLACE;
  if (flow->kind == FLOW_CLEARS)
    value.origins = 0;
  if (flow->kind == FLOW_READS_CLOCK)
    value.origins |= bit(VARIES_BIT);
  return value;
}

static void step(struct wait_slice *slice, struct state *state, const struct block *block,
                 const struct flow_instruction *flow, const uint64_t *words, uint64_t pc) {
  struct value value = input_of(slice, state, block, flow, words, pc);
  if (flow->is_branch) {
    state->last_branch = value.origins;
    state->branches |= value.origins;
    if (!origins_vary(value.origins))
      state->steady |= value.origins;
  }
  struct value result = value;
  if (flow->kind == FLOW_GETS_OLD)
    result.origins = memory_origins(slice, state, block, flow, words, pc);
  for (uint32_t place = 0; place < FLOW_REGISTERS; place++) {
    if ((flow->replaces >> place & 1) != 0)
      state->place[place] = place == FLOW_FLAGS ? value : result;
    else if ((flow->changes >> place & 1) != 0)
      state->place[place] = (struct value){state->place[place].origins | value.origins, NO_PLACE};
    else
      continue;
    state->is_written[place] = true;
  }
  for (uint32_t i = flow->first_slot; i < flow->first_slot + flow->slots; i++) {
    if (writes_memory(&block->slot[i]))
      store(slice, state, path_slot_value(&block->slot[i], words), block->slot[i].bytes, value);
  }
}

static void walk(struct wait_slice *slice, struct state *state, const uint64_t *from,
                 const uint64_t *to) {
  while (from < to && !slice->has_failed) {
    if (word_is_marker(*from)) {
      from += path_step(from, to);
      continue;
    }
    const struct block *block = code_table_get((uint32_t)*from);
    const struct block_flow *flow = predictor_flow(slice->predictor, (uint32_t)*from);
    slice->has_failed |= flow->is_opaque;
    uint64_t pc = block->address;
    uint32_t executed = raw_words_executed(from, to);
    for (uint32_t i = 0; i < flow->instructions && i < executed; i++) {
      step(slice, state, block, &flow->instruction[i], from, pc);
      pc += block->lengths[i];
    }
    from += block->raw_words;
  }
}

void wait_slice_add(struct wait_slice *slice, const uint64_t *from, const uint64_t *to) {
  struct state state;
  memset(&state, 0, sizeof(state));
  for (uint32_t place = 0; place < PLACES; place++)
    state.place[place] = (struct value){bit(place), (int)place};
  walk(slice, &state, from, to);
  for (uint32_t place = 0; place < PLACES; place++) {
    if (!state.is_written[place] || state.place[place].copy_of == (int)place)
      continue;
    slice->is_changed[place] = true;
    slice->end[place] |= state.place[place].origins;
  }
  slice->branches |= state.branches;
}

/* Replaces the places of a round's start that rounds change by what they are made of. */
static origin_set expand(const struct wait_slice *slice, origin_set origins) {
  origin_set expanded = origins;
  for (uint32_t place = 0; place < PLACES; place++) {
    if ((origins & bit(place)) != 0 && slice->is_changed[place])
      expanded |= slice->end[place];
  }
  return expanded;
}

void wait_slice_close(struct wait_slice *slice) {
  bool has_grown = true;
  while (has_grown) {
    has_grown = false;
    for (uint32_t place = 0; place < PLACES; place++) {
      origin_set expanded = expand(slice, slice->end[place]);
      has_grown |= slice->is_changed[place] && expanded != slice->end[place];
      if (slice->is_changed[place])
        slice->end[place] = expanded;
    }
  }
  /* Made of itself, and not the same again: it counts. */
  for (uint32_t place = 0; place < PLACES; place++) {
    if (slice->is_changed[place] && (slice->end[place] & bit(place)) != 0)
      slice->end[place] |= bit(VARIES_BIT);
  }
  for (uint32_t place = 0; place < PLACES; place++)
    slice->start[place] =
        slice->is_changed[place] ? expand(slice, slice->end[place]) & ~bit(place) : bit(place);
  slice->branches = expand(slice, slice->branches);
}

/* Walks a path that begins as any round but the first. */
static void walk_later(struct wait_slice *slice, struct state *state, const uint64_t *from,
                       const uint64_t *to) {
  memset(state, 0, sizeof(*state));
  for (uint32_t place = 0; place < PLACES; place++)
    state->place[place] = (struct value){slice->start[place], NO_PLACE};
  walk(slice, state, from, to);
}

origin_set wait_slice_exit(struct wait_slice *slice, const uint64_t *from, const uint64_t *to) {
  struct state state;
  walk_later(slice, &state, from, to);
  return state.last_branch;
}

origin_set wait_slice_steady(struct wait_slice *slice, const uint64_t *from, const uint64_t *to) {
  struct state state;
  walk_later(slice, &state, from, to);
  return state.steady;
}
