/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_path.h"

#include "instruction_set.h"
#include "record_format.h"
#include "selected_memory.h"
#include "varint.h"

#include <sys/syscall.h>

#define ROUND_EXECUTIONS_MAX 4096u
#define ROUND_BLOCKS_MAX 64u
#define EXIT_EDGES_MAX ROUND_WORDS_MAX
/* On the way from the loop to the call that blocks. */
#define SLEEP_RECORDS_MAX 64u
/* More than a call has. */
#define CALL_STEP_WORDS_MAX (1u << 20)

static bool is_event(const uint64_t *at, uint8_t event) {
  return word_is_marker(*at) && marker_event(*at) == event;
}

size_t path_step(const uint64_t *at, const uint64_t *to) {
  if (!is_event(at, EVENT_CALL_BEGIN))
    return raw_words_of(at);
  const uint64_t *end = at;
  while (end < to && !is_event(end, EVENT_CALL_END))
    end += raw_words_of(end);
  return (size_t)(end < to ? end + raw_words_of(end) - at : to - at);
}

static const uint64_t *next_event(const uint64_t *at, const uint64_t *to) {
  while (at < to && !word_is_marker(*at))
    at += raw_words_of(at);
  return at;
}

static bool markers_are_equal(const uint64_t *one, const uint64_t *other) {
  size_t header = 1 + marker_has_clock(*one);
  return *one == *other &&
         words_are_equal(one + header, other + header, marker_words(*one) - header);
}

bool path_steps_are_equal(const uint64_t *one, const uint64_t *other, const uint64_t *other_end) {
  if (!word_is_marker(*one) || !word_is_marker(*other))
    return *one == *other && words_are_equal(one, other, raw_words_of(one));
  if (!is_event(one, EVENT_CALL_BEGIN))
    return markers_are_equal(one, other);
  for (;;) {
    if (other >= other_end || !markers_are_equal(one, other))
      return false;
    if (is_event(one, EVENT_CALL_END))
      return true;
    one = next_event(one + marker_words(*one), one + CALL_STEP_WORDS_MAX);
    other = next_event(other + marker_words(*other), other_end);
  }
}

bool path_is_note(const uint64_t *at) {
  return word_is_marker(*at) &&
         (marker_event(*at) == MARKER_LOOK || marker_event(*at) == EVENT_SPIN_RELEASE);
}

const uint64_t *path_behind_notes(const uint64_t *at, const uint64_t *to) {
  while (at < to && path_is_note(at))
    at += raw_words_of(at);
  return at;
}

bool path_has_interruption(const uint64_t *from, const uint64_t *to) {
  for (; from < to; from += raw_words_of(from)) {
    if (was_interrupted(from, to))
      return true;
  }
  return false;
}

static const uint8_t *marker_fields(const uint64_t *at) {
  return (const uint8_t *)(at + 1 + marker_has_clock(*at));
}

static const uint8_t *skip_varint(const uint8_t *in) {
  while ((*in & 0x80) != 0)
    in++;
  return in + 1;
}

bool path_look(const uint64_t *at, struct polled_look *look) {
  if (!word_is_marker(*at))
    return false;
  const uint8_t *fields = marker_fields(at), *second;
  bool only_reads = false;
  uint8_t lends = 0;
  if (marker_event(*at) == MARKER_LOOK) {
    second = skip_varint(fields);
    const uint8_t *bytes = skip_varint(second);
    only_reads = bytes[0] != 0;
    lends = bytes[1];
  } else if (marker_event(*at) == EVENT_SPIN_RELEASE) {
    second = skip_varint(fields) + 1; /* behind its kind: the store that it came after */
    if (varint_read(second) == 0)
      return false;
  } else {
    return false;
  }
  *look = (struct polled_look){varint_read(fields), varint_read(second), only_reads, lends};
  return true;
}

/* Yielding and sleeping make a round longer, and change nothing. */
static bool may_be_in_round(const uint64_t *at, int *locked) {
  switch (marker_event(*at)) {
  case EVENT_SYSTEM_CALL: {
    int number = instruction_set.x86_64_call((int)varint_read(marker_fields(at)));
    return number == SYS_sched_yield || number == SYS_nanosleep || number == SYS_clock_nanosleep;
  }
  case EVENT_MUTEX_LOCK:
  case EVENT_SPIN_LOCK:
    (*locked)++;
    return true;
  case EVENT_MUTEX_UNLOCK:
  case EVENT_SPIN_UNLOCK:
    return --*locked >= 0;
  case EVENT_ATTEMPT_FAILED:
  case EVENT_CALL_BEGIN:
  case EVENT_CALL_END:
  case EVENT_INTERRUPTED: /* The thread goes on in the middle of the block. */
    return true;
  default:
    return false;
  }
}

int path_locks_taken(const uint64_t *at, const uint64_t *to) {
  int locks = 0;
  for (; at < to; at += raw_words_of(at)) {
    if (!word_is_marker(*at))
      continue;
    uint8_t event = marker_event(*at);
    locks += event == EVENT_MUTEX_LOCK || event == EVENT_SPIN_LOCK;
    locks -= event == EVENT_MUTEX_UNLOCK || event == EVENT_SPIN_UNLOCK;
  }
  return locks;
}

static bool is_harmless(const struct own_range own[2], const struct block *block,
                        const uint64_t *words, const uint64_t *to) {
  uint32_t executed = raw_words_executed(words, to);
  if ((block->flags & BLOCK_HAS_MARKER) != 0)
    return false;
  if (values_are_recorded && (block->flags & BLOCK_STORES) != 0)
    return false; /* The writes of a record with values are counted. */
  for (uint32_t i = 0; i < block->slots && block->slot[i].instruction < executed; i++) {
    const struct slot *slot = &block->slot[i];
    switch (slot->kind) {
    case SLOT_LOAD:
    case SLOT_PREFETCH:
    case SLOT_UPDATE:
      break;
    case SLOT_STORE:
      if (!is_own_address(own, path_slot_value(slot, words)))
        return false;
      break;
    default:
      return false;
    }
  }
  return true;
}

/* Whether it is a store by which the thread tells others something: waiting does not. */
static bool tells_others(const struct own_range own[2], const uint64_t *note) {
  return marker_event(*note) == EVENT_SPIN_RELEASE &&
         !is_own_address(own, varint_read(marker_fields(note)));
}

struct seen_blocks {
  uint32_t id[ROUND_BLOCKS_MAX];
  uint32_t count;
};

static bool see(struct seen_blocks *seen, uint32_t id) {
  for (uint32_t i = seen->count; i > 0; i--) {
    if (seen->id[i - 1] == id)
      return true;
  }
  if (seen->count == ROUND_BLOCKS_MAX)
    return false;
  seen->id[seen->count++] = id;
  return true;
}

struct path_place path_read_of(const uint64_t *at, uint64_t address) {
  const struct block *block = code_table_get((uint32_t)*at);
  for (uint32_t i = 0; i < block->slots; i++) {
    const struct slot *slot = &block->slot[i];
    if ((slot->kind == SLOT_LOAD || slot->kind == SLOT_UPDATE) &&
        path_slot_value(slot, at) == address)
      return (struct path_place){address, block_pc(block, slot->instruction)};
  }
  return (struct path_place){0, 0};
}

static bool is_head(const struct path_head *head, const uint64_t *at) {
  if (*at == *head->words && words_are_equal(at, head->words, head->count))
    return true;
  return head->polled.address != 0 && path_read_of(at, head->polled.address).pc == head->polled.pc;
}

enum path_round path_round(const struct own_range own[2], const struct path_head *head,
                           const uint64_t *at, const uint64_t *to, const uint64_t **end) {
  const uint64_t *notes = NULL, *start = at, *looked = NULL;
  struct seen_blocks seen = {.count = 0};
  uint32_t executions = 0;
  int locked = 0;
  bool is_in_call = false;
  for (; at < to; at += raw_words_of(at)) {
    is_in_call = (is_in_call || is_event(at, EVENT_CALL_BEGIN)) && !is_event(at, EVENT_CALL_END);
    if (path_is_note(at)) {
      if (tells_others(own, at))
        return ROUND_LEAVES;
      notes = notes == NULL ? at : notes;
      continue;
    }
    if (word_is_marker(*at)) {
      notes = NULL;
      if (!may_be_in_round(at, &locked))
        return ROUND_LEAVES;
      continue;
    }
    const struct block *block = code_table_get((uint32_t)*at);
    if (at + block->raw_words > to)
      return ROUND_GOES_ON;
    if (executions > 0 && !is_in_call && is_head(head, at)) {
      *end = notes != NULL ? notes : at;
      return locked == 0 ? ROUND_ENDS : ROUND_LEAVES;
    }
    /* What polls twice in a round has a loop of its own in it. */
    if (notes != NULL && !is_in_call) {
      if (looked != NULL && *looked == *at && words_are_equal(looked, at, block->raw_words))
        return ROUND_LEAVES;
      looked = at;
    }
    notes = NULL;
    if (is_in_call)
      continue;
    if (!is_harmless(own, block, at, to) || !see(&seen, block->id) ||
        ++executions > ROUND_EXECUTIONS_MAX || at - start > ROUND_WORDS_MAX)
      return ROUND_LEAVES;
  }
  return ROUND_GOES_ON;
}

static void go_to_next_block(const uint64_t *at, const uint64_t *to, struct path_exit *exit) {
  exit->how = EXIT_UNKNOWN;
  for (; at < to; at += path_step(at, to)) {
    if (!word_is_marker(*at)) {
      exit->how = EXIT_BY_BRANCH;
      exit->to = (uint32_t)*at;
      exit->is_at_end = false;
      return;
    }
    switch (marker_event(*at)) {
    case EVENT_FUTEX_WAIT:
      exit->how = EXIT_INTO_WAIT;
      exit->object = varint_read(marker_fields(at));
      return;
    case EVENT_SIGNAL:
      exit->how = EXIT_BY_INTERRUPTION;
      return;
    default:
      break;
    }
  }
  exit->is_at_end = true;
}

/* Makes the block at `at` the one from which the edge leads; of one that was interrupted, what the
 * thread went on with. */
static void go_from(const uint64_t *at, const uint64_t *to, struct path_exit *exit) {
  bool has_end = false;
  while (!has_end) {
    while (at < to && word_is_marker(*at))
      at += path_step(at, to);
    exit->how = EXIT_UNKNOWN;
    exit->is_at_end = true;
    if (at >= to || at + raw_words_of(at) > to)
      return;
    exit->from = (uint32_t)*at;
    exit->end = at + raw_words_of(at);
    go_to_next_block(exit->end, to, exit);
    has_end = exit->how != EXIT_BY_BRANCH || !was_interrupted(exit->end, to);
    at = exit->end;
  }
}

void path_find_exit(const uint64_t *at, const uint64_t *to, struct path_exit *exit) {
  exit->passed = 0;
  go_from(at, to, exit);
}

void path_next_edge(const uint64_t *to, struct path_exit *exit) {
  if (++exit->passed > EXIT_EDGES_MAX) {
    exit->how = EXIT_UNKNOWN;
    exit->is_at_end = false;
    return;
  }
  go_from(exit->end, to, exit);
}

void path_find_sleep(const uint64_t *at, const uint64_t *to, struct path_sleep *sleep) {
  *sleep = (struct path_sleep){0, false};
  for (uint32_t records = 0; records < SLEEP_RECORDS_MAX; records++) {
    if (at >= to) {
      sleep->is_unknown = true;
      return;
    }
    if (is_event(at, EVENT_FUTEX_WAIT)) {
      sleep->object = varint_read(marker_fields(at));
      return;
    }
    if (word_is_marker(*at) && marker_has_clock(*at) && !path_is_note(at))
      return;
    at += raw_words_of(at);
  }
}

void path_updates_up_to(const struct own_range own[2], struct path_updates *updates,
                        const uint64_t *to) {
  const uint64_t *at = updates->at;
  for (; at < to; at += path_step(at, to)) {
    if (word_is_marker(*at))
      continue;
    const struct block *block = code_table_get((uint32_t)*at);
    for (uint32_t i = 0; i < block->slots; i++) {
      const struct slot *slot = &block->slot[i];
      uint64_t address = path_slot_value(slot, at);
      if (slot->bytes > 8 || is_own_address(own, address))
        continue;
      bool is_update = slot->kind == SLOT_UPDATE;
      for (uint32_t load = 0; load < LOADS_KEPT && slot->kind == SLOT_STORE; load++)
        is_update |= updates->loaded[load] == address;
      if (is_update)
        updates->last = (struct path_place){address, block->address};
      if (slot->kind == SLOT_LOAD)
        updates->loaded[updates->loads++ % LOADS_KEPT] = address;
    }
  }
  updates->at = at;
}
