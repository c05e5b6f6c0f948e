/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_entry.h"

#include "encoder.h"
#include "raw_words.h"
#include "record_format.h"

bool entry_updates_another(const uint64_t *at, uint64_t address) {
  const struct block *block = code_table_get((uint32_t)*at);
  for (uint32_t i = 0; i < block->slots; i++) {
    if (block->slot[i].kind == SLOT_UPDATE && path_slot_value(&block->slot[i], at) != address)
      return true;
  }
  return false;
}

struct path_place entry_polled(struct encoder *encoder, const uint64_t *notes,
                               const uint64_t *execution) {
  struct path_place polled = {0, 0};
  struct polled_look look;
  for (const uint64_t *note = notes; note < execution; note += raw_words_of(note)) {
    if (polled.address == 0 && marker_event(*note) == MARKER_LOOK && path_look(note, &look))
      polled = path_read_of(execution, look.address);
  }
  for (; notes < execution; notes += raw_words_of(notes)) {
    if (encoder_learns_of_store(encoder, notes, &look) &&
        (marker_event(*notes) == MARKER_LOOK || look.address == polled.address))
      return (struct path_place){0, 0};
  }
  return polled;
}

bool entry_look(const uint64_t *notes, const uint64_t *to, uint64_t address,
                struct polled_look *look) {
  for (; notes < to; notes += raw_words_of(notes)) {
    if (marker_event(*notes) == MARKER_LOOK && path_look(notes, look) && look->address == address)
      return true;
  }
  return false;
}

bool entry_next_look(const uint64_t *at, const uint64_t *to, uint64_t address,
                     struct next_look *next) {
  const uint64_t *end = at + LEAD_WORDS_MAX < to ? at + LEAD_WORDS_MAX : to;
  while (at < end) {
    const uint64_t *behind = path_behind_notes(at, to);
    struct polled_look look;
    if (behind >= to || behind + raw_words_of(behind) > to)
      return false;
    if (entry_look(at, behind, address, &look)) {
      *next = (struct next_look){at, behind, look.clock, path_read_of(behind, address).pc};
      return next->pc != 0;
    }
    at = behind + raw_words_of(behind);
  }
  return false;
}

bool entry_lets_time_pass(const uint64_t *from, const uint64_t *to) {
  for (; from < to; from += path_step(from, to)) {
    if (word_is_marker(*from) ? marker_event(*from) == EVENT_SYSTEM_CALL
                              : (code_table_get((uint32_t)*from)->flags & BLOCK_HAS_PAUSE) != 0)
      return true;
  }
  return false;
}
