/* SPDX-License-Identifier: Apache-2.0 */
#include "spin_rounds.h"

#include "code_table.h"
#include "platform.h"
#include "raw_words.h"
#include "record_format.h"
#include "region_of_interest.h"
#include "thread.h"

#include <string.h>

#define SPIN_PERIOD_MAX 32
#define SPIN_ROUNDS 8
/* A longer one does more than wait. */
#define ROUND_WORDS_MAX 512

static bool is_own(const struct thread *thread, uint64_t address) {
  return address >= thread->stack_low && address < thread->stack_high;
}

/* Adds the word with what it holds, unless it is there. */
static bool add(struct baton_member *member, uint64_t address, uint32_t bytes) {
  for (uint32_t i = 0; i < member->watched; i++) {
    if (member->watch[i].address == address && member->watch[i].bytes == bytes)
      return true;
  }
  struct watched_word word = {.address = address, .bytes = bytes};
  size_t read;
  if (bytes > sizeof(word.value) || member->watched == WATCHED_WORDS_MAX ||
      !platform_read((const void *)(uintptr_t)address, bytes, &word.value, &read))
    return false;
  member->watch[member->watched++] = word;
  return true;
}

static uint64_t slot_value(const struct slot *slot, const uint64_t *words) {
  return words[slot->raw] + (uint64_t)slot->displacement;
}

/* An update that found what is there now has changed nothing. */
static bool changes_nothing(const struct block *block, uint32_t at, const uint64_t *words) {
  uint64_t address = slot_value(&block->slot[at], words), value = 0;
  uint32_t bytes = block->slot[at].bytes;
  size_t read;
  if (bytes > sizeof(value) || at + 1 == block->slots || block->slot[at + 1].kind != SLOT_VALUE ||
      !platform_read((const void *)(uintptr_t)address, bytes, &value, &read))
    return false;
  return memcmp(&value, &(uint64_t){slot_value(&block->slot[at + 1], words)}, bytes) == 0;
}

static bool watch_block(struct thread *thread, const uint64_t *words) {
  const struct block *block = code_table_get((uint32_t)*words);
  for (uint32_t i = 0; i < block->slots; i++) {
    const struct slot *slot = &block->slot[i];
    uint64_t address = slot_value(slot, words);
    if (slot->kind == SLOT_VALUE || slot->kind == SLOT_PREFETCH)
      continue;
    bool is_look =
        slot->kind == SLOT_LOAD || (slot->kind == SLOT_UPDATE && changes_nothing(block, i, words));
    bool is_kept_to_itself =
        is_own(thread, address) && (slot->kind == SLOT_LOAD || slot->kind == SLOT_STORE);
    if (!is_kept_to_itself && !(is_look && add(&thread->member, address, slot->bytes)))
      return false;
  }
  return true;
}

/* Where the last of several equal rounds began; NULL where there are none. */
static const uint64_t *last_round(const struct thread *thread) {
  const uint64_t *end = *thread->position;
  for (ptrdiff_t period = 1; period <= SPIN_PERIOD_MAX; period++) {
    ptrdiff_t words = period * SPIN_ROUNDS;
    if (end - words - period < thread->buffer)
      return NULL;
    if (memcmp(end - words, end - words - period, (size_t)words * sizeof(*end)) == 0)
      return end - period;
  }
  return NULL;
}

uint32_t spin_rounds_watch(struct thread *thread, bool pauses) {
  const uint64_t *end = *thread->position, *words = pauses ? thread->buffer : last_round(thread);
  thread->member.watched = 0;
  if (region_is_outside || words == NULL || end - words > ROUND_WORDS_MAX)
    return 0;
  for (; words < end; words += raw_words_of(words)) {
    bool is_turn = word_is_marker(*words) && marker_event(*words) == EVENT_TURN;
    if (!is_turn && (word_is_marker(*words) || !watch_block(thread, words)))
      return 0;
  }
  return words == end ? thread->member.watched : 0;
}
