/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_rounds.h"

#include "raw_words.h"
#include "wait_path.h"

#include <string.h>

/* The way from one block to another by the branch that it is, whichever block that ends. */
static uint64_t edge_of(uint32_t from, uint32_t to) {
  const struct block *block = code_table_get(from);
  return block_pc(block, block->instructions - 1) * 0x9e3779b97f4a7c15ull ^
         code_table_get(to)->address;
}

static uint32_t edge_place(const struct wait_rounds *rounds, uint64_t edge) {
  uint32_t at = (uint32_t)((edge * 0x9e3779b97f4a7c15ull) >> 40) & (EDGES_MAX - 1);
  while (rounds->edge[at] != 0 && rounds->edge[at] != edge)
    at = (at + 1) & (EDGES_MAX - 1);
  return at;
}

bool wait_rounds_have_edge(const struct wait_rounds *rounds, uint32_t from, uint32_t to) {
  return rounds->edge[edge_place(rounds, edge_of(from, to))] != 0;
}

/* False where there are too many. */
static bool add_edge(struct wait_rounds *rounds, uint32_t from, uint32_t to) {
  uint64_t edge = edge_of(from, to);
  uint32_t at = edge_place(rounds, edge);
  if (rounds->edge[at] == edge)
    return true;
  if (rounds->edges == EDGES_MAX / 2)
    return false;
  rounds->edge[at] = edge;
  rounds->edges++;
  return true;
}

static bool is_among(const uint64_t *addresses, uint32_t count, uint64_t address) {
  for (uint32_t i = 0; i < count; i++) {
    if (addresses[i] == address)
      return true;
  }
  return false;
}

bool wait_rounds_have_load(const struct wait_rounds *rounds, uint64_t address) {
  return is_among(rounds->load, rounds->loads, address);
}

/* False where there are too many. */
static bool add_update(struct wait_rounds *rounds, uint64_t address) {
  if (is_among(rounds->update, rounds->updates, address))
    return true;
  if (rounds->updates == UPDATES_MAX)
    return false;
  rounds->update[rounds->updates++] = address;
  return true;
}

static bool stores_to(const uint64_t *from, const uint64_t *to, uint64_t address) {
  for (; from < to; from += path_step(from, to)) {
    if (word_is_marker(*from))
      continue;
    const struct block *block = code_table_get((uint32_t)*from);
    uint32_t executed = raw_words_executed(from, to);
    for (uint32_t i = 0; i < block->slots && block->slot[i].instruction < executed; i++) {
      if (block->slot[i].kind == SLOT_STORE && path_slot_value(&block->slot[i], from) == address)
        return true;
    }
  }
  return false;
}

bool round_reads_what_it_does_not_store(const uint64_t *from, const uint64_t *to) {
  for (const uint64_t *at = from; at < to; at += path_step(at, to)) {
    if (word_is_marker(*at))
      continue;
    const struct block *block = code_table_get((uint32_t)*at);
    uint32_t executed = raw_words_executed(at, to);
    for (uint32_t i = 0; i < block->slots && block->slot[i].instruction < executed; i++) {
      const struct slot *slot = &block->slot[i];
      if (slot->kind == SLOT_UPDATE ||
          (slot->kind == SLOT_LOAD && !stores_to(from, to, path_slot_value(slot, at))))
        return true;
    }
  }
  return false;
}

/* Takes in what a round of another shape reads and updates; false where that is too much. Counts
 * the round if it reads shared words that none before has read. */
static bool add_accesses(struct wait_rounds *rounds, const struct own_range *own,
                         const uint64_t *from, const uint64_t *to) {
  bool widens = false;
  for (; from < to; from += path_step(from, to)) {
    if (word_is_marker(*from))
      continue;
    const struct block *block = code_table_get((uint32_t)*from);
    uint32_t executed = raw_words_executed(from, to);
    for (uint32_t i = 0; i < block->slots && block->slot[i].instruction < executed; i++) {
      const struct slot *slot = &block->slot[i];
      uint64_t address = path_slot_value(slot, from);
      if (slot->kind != SLOT_LOAD && slot->kind != SLOT_UPDATE)
        continue;
      if (slot->kind == SLOT_UPDATE && !is_own_address(own, address) &&
          !add_update(rounds, address))
        return false;
      if (wait_rounds_have_load(rounds, address))
        continue;
      if (rounds->loads == LOADS_MAX)
        return false;
      rounds->load[rounds->loads++] = address;
      widens |= rounds->shapes != 0 && !is_own_address(own, address);
    }
  }
  rounds->widening += widens;
  return true;
}

/* What differs in how long a round delays is left out: it reads nothing, or the thread's stack. */
static uint64_t digest_of_reads(const struct own_range *own, const uint64_t *from,
                                const uint64_t *to) {
  uint64_t digest = 0;
  for (; from < to; from += path_step(from, to)) {
    if (word_is_marker(*from))
      continue;
    const struct block *block = code_table_get((uint32_t)*from);
    uint32_t executed = raw_words_executed(from, to);
    for (uint32_t i = 0; i < block->slots && block->slot[i].instruction < executed; i++) {
      uint64_t address = path_slot_value(&block->slot[i], from);
      bool reads = block->slot[i].kind == SLOT_LOAD || block->slot[i].kind == SLOT_UPDATE;
      if (reads && !is_own_address(own, address))
        digest = (digest ^ address) * 0x9e3779b97f4a7c15ull;
    }
  }
  return digest;
}

static bool add_edges(struct wait_rounds *rounds, const uint64_t *from, const uint64_t *to) {
  uint32_t before = 0, first = 0;
  for (; from < to; from += path_step(from, to)) {
    if (word_is_marker(*from))
      continue;
    if (before != 0 && !add_edge(rounds, before, (uint32_t)*from))
      return false;
    first = first == 0 ? (uint32_t)*from : first;
    /* From an interrupted block no branch leads on. */
    before = was_interrupted(from + raw_words_of(from), to) ? 0 : (uint32_t)*from;
  }
  return before == 0 || add_edge(rounds, before, first);
}

static bool has_shape(const struct wait_rounds *rounds, const struct shape *shape,
                      const uint64_t *from, const uint64_t *to) {
  const uint64_t *stored = rounds->stored + shape->first, *end = stored + shape->count;
  for (; from < to; from += path_step(from, to)) {
    if (path_is_note(from))
      continue;
    if (stored >= end || !path_steps_are_equal(from, stored, end))
      return false;
    stored += path_step(stored, end);
  }
  return stored == end;
}

bool wait_rounds_have_shape(const struct wait_rounds *rounds, const uint64_t *from,
                            const uint64_t *to) {
  for (uint32_t i = 0; i < rounds->shapes; i++) {
    if (has_shape(rounds, &rounds->shape[i], from, to))
      return true;
  }
  return false;
}

uint32_t wait_rounds_shape(struct wait_rounds *rounds, uint32_t newest, const struct own_range *own,
                           const uint64_t *from, const uint64_t *to) {
  if (rounds->shapes != 0 && has_shape(rounds, &rounds->shape[newest], from, to))
    return newest;
  for (uint32_t i = 0; i < rounds->shapes; i++) {
    if (has_shape(rounds, &rounds->shape[i], from, to))
      return i;
  }
  if (rounds->shapes == SHAPES_MAX ||
      rounds->stored_words + (size_t)(to - from) > STORED_WORDS_MAX ||
      !add_accesses(rounds, own, from, to) || !add_edges(rounds, from, to))
    return SHAPES_MAX;
  if (rounds->shapes == 0)
    rounds->first_loads = rounds->loads;
  struct shape *shape = &rounds->shape[rounds->shapes];
  *shape = (struct shape){.first = rounds->stored_words, .reads = digest_of_reads(own, from, to)};
  for (; from < to; from += raw_words_of(from)) {
    if (path_is_note(from))
      continue;
    memcpy(rounds->stored + rounds->stored_words, from, raw_words_of(from) * sizeof(uint64_t));
    rounds->stored_words += (uint32_t)raw_words_of(from);
    if (!word_is_marker(*from))
      shape->instructions += raw_words_executed(from, to);
  }
  shape->count = rounds->stored_words - shape->first;
  return rounds->shapes++;
}

bool wait_rounds_began_with(const struct wait_rounds *rounds, uint64_t address) {
  return is_among(rounds->load, rounds->first_loads, address);
}
