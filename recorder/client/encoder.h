/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the raw words that instrumented code leaves in a thread's buffer into the streams of a
 * TRACE frame, and writes the frame when it is full. Raw words are a sequence of
 *   - executions: the block's id, then its raw words (struct block, raw_words);
 *   - markers, for events: a word with bit 63 set (see marker_word), for some the event's clock,
 * and the event's remaining fields as they go to the record, padded to whole words. */
#ifndef ENCODER_H
#define ENCODER_H

#include "dr_api.h"
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

#define MARKER_BIT (1ull << 63)

static inline uint64_t marker_word(uint8_t event_type, bool has_clock, uint32_t field_bytes) {
  return MARKER_BIT | (uint64_t)has_clock << 40 | (uint64_t)event_type << 32 | field_bytes;
}
static inline bool word_is_marker(uint64_t word) { return (word & MARKER_BIT) != 0; }
static inline uint8_t marker_event(uint64_t word) { return (uint8_t)(word >> 32); }
static inline bool marker_has_clock(uint64_t word) { return (word >> 40 & 1) != 0; }
static inline uint32_t marker_field_bytes(uint64_t word) { return (uint32_t)word; }
static inline size_t marker_words(uint64_t word) {
  return 1 + marker_has_clock(word) + ((size_t)marker_field_bytes(word) + 7) / 8;
}

struct stream {
  uint8_t *bytes;
  uint8_t *end; /* of what is written */
  size_t capacity;
};

struct block_state;

struct encoder {
  uint32_t thread;
  uint32_t sequence; /* of the next frame */
  uint64_t position; /* instructions in the frames before */

  /* The frame that is being filled. */
  uint32_t epoch; /* its number; state of another epoch is empty */
  bool has_frame;
  struct stream control, slots, events;
  uint64_t run; /* right predictions since the last pair */
  uint64_t instructions;
  uint64_t instructions_end;     /* where something other than the next block is due */
  uint64_t instructions_counted; /* of them, in the process's count */
  uint64_t clock_start;
  uint64_t clock_last; /* of the last event that has one */

  struct block_state *previous; /* the last executed block */
  struct block_state *nothing;  /* stands before a frame's first block */
  struct block_state **states;  /* by block id */
  uint32_t states_capacity;
  struct arena arena;

  /* A spin loop whose end has not been seen yet: the round at the front of the words is encoded,
   * and so many like it have been passed over. */
  bool is_spinning;
  uint64_t spin_rounds;
  size_t spin_words; /* of a round */
};

void encoder_init(struct encoder *encoder, uint32_t thread, uint32_t sequence, uint64_t position);
void encoder_free(struct encoder *encoder);

/* Encodes the raw words [from, to). Stops before an execution that does not end by `to`, and before
 * the rounds of a spin loop that may go on there; these must stand at the front of the next call's
 * words. Returns where it stopped. */
const uint64_t *encoder_consume(struct encoder *encoder, const uint64_t *from, const uint64_t *to);

/* Likewise, but nothing follows: spin loops end here. */
void encoder_consume_all(struct encoder *encoder, const uint64_t *from, const uint64_t *to);

/* Writes the frame that is being filled, if there is anything in it. */
void encoder_write_frame(struct encoder *encoder);

/* Start of the last record before `to`, where one ends; NULL where there is none. */
const uint64_t *raw_words_last_record(const uint64_t *from, const uint64_t *to);

/* Start of the execution that lies across `to`; `to` where one ends right there. */
const uint64_t *raw_words_last_start(const uint64_t *from, const uint64_t *to);

#endif
