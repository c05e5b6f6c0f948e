/* SPDX-License-Identifier: Apache-2.0 */
#include "encoder.h"

#include "raw_words.h"
#include "record_format.h"
#include "varint.h"

#include <string.h>

void encoder_init(struct encoder *encoder, uint32_t thread, uint32_t sequence, uint64_t position) {
  memset(encoder, 0, sizeof(*encoder));
  trace_frame_init(&encoder->frame, thread, sequence, position);
  predictor_init(&encoder->predictor);
}

void encoder_free(struct encoder *encoder) {
  trace_frame_free(&encoder->frame);
  predictor_free(&encoder->predictor);
}

static void open_frame(struct encoder *encoder) {
  trace_frame_open(&encoder->frame);
  predictor_begin_frame(&encoder->predictor);
}

void encoder_make_room(struct encoder *encoder) {
  struct trace_frame *frame = &encoder->frame;
  if (!trace_frame_is_due(frame))
    return;
  if (frame->is_open)
    trace_frame_pass_region_boundaries(frame);
  if (!frame->is_open || trace_frame_is_due(frame)) {
    trace_frame_write(frame);
    open_frame(encoder);
    trace_frame_pass_region_boundaries(frame);
  }
}

static void encode_marker(struct encoder *encoder, const uint64_t *words) {
  struct trace_frame *frame = &encoder->frame;
  uint8_t type = marker_event(words[0]);
  bool has_clock = marker_has_clock(words[0]);
  const uint8_t *fields = (const uint8_t *)(words + 1 + (has_clock ? 1 : 0));
  if (type == EVENT_INTERRUPTED) { /* It stands in the frame of the block that it is about. */
    uint64_t executed = varint_read(fields);
    frame->instructions -= encoder->predictor.previous->instructions - executed;
  } else {
    encoder_make_room(encoder);
  }
  trace_frame_event(frame, type, has_clock, has_clock ? words[1] : 0, fields,
                    marker_field_bytes(words[0]));
}

/* The block's first execution in this frame: nothing is known of it. */
static uint8_t *encode_first_slots(struct block_state *state, const uint64_t *words, uint8_t *out) {
  for (uint32_t i = 0; i < state->slots; i++) {
    struct slot_state *slot = &state->slot[i];
    uint64_t value = words[slot->raw] + slot->displacement;
    out = svarint_write(out, (int64_t)value);
    slot->last = value;
    slot->stride = 0;
  }
  return out;
}

static inline uint8_t *encode_slots(struct block_state *state, const uint64_t *words,
                                    uint8_t *out) {
  struct slot_state *slot = state->slot, *end = slot + state->slots;
  for (; slot != end; slot++) {
    uint64_t value = words[slot->raw] + slot->displacement;
    uint64_t stride = value - slot->last;
    uint64_t difference = stride - slot->stride;
    slot->last = value;
    slot->stride = stride;
    out = svarint_write(out, (int64_t)difference);
  }
  return out;
}

/* Executions up to the first word that needs more than encoding: a marker, a block that this thread
 * has not executed before, a full frame, or the end. What the loop changes is kept out of memory
 * that it writes bytes to. */
static const uint64_t *encode_executions(struct encoder *encoder, const uint64_t *words,
                                         const uint64_t *to) {
  struct trace_frame *frame = &encoder->frame;
  struct predictor *predictor = &encoder->predictor;
  const uint64_t *entries = predictor->entries;
  struct block_state *previous = predictor->previous;
  uint32_t capacity = predictor->capacity, epoch = predictor->epoch;
  uint64_t run = frame->run, instructions = frame->instructions;
  uint64_t instructions_end = frame->instructions_end;
  uint8_t *control = frame->control.end, *slots = frame->slots.end;
  uint8_t *control_full = frame->control.bytes + FRAME_STREAM_BYTES;
  uint8_t *slots_full = frame->slots.bytes + FRAME_STREAM_BYTES;
  while (words < to && instructions < instructions_end && control < control_full &&
         slots < slots_full) {
    /* Markers are beyond the capacity, too. */
    uint64_t entry = words[0] < capacity ? entries[words[0]] : 0;
    struct block_state *state = entry_state(entry);
    const uint64_t *next = words + entry_words(entry);
    if (entry == 0 || next > to)
      break;
    if (previous->next == state->id) {
      run++;
    } else {
      control = varint_write(control, run);
      control = varint_write(control, state->record_id);
      run = 0;
      previous->next = state->id;
    }
    if (state->epoch == epoch) {
      slots = encode_slots(state, words, slots);
    } else {
      state->epoch = epoch;
      state->next = 0;
      slots = encode_first_slots(state, words, slots);
    }
    instructions += state->instructions;
    previous = state;
    words = next;
  }
  frame->run = run;
  frame->instructions = instructions;
  frame->control.end = control;
  frame->slots.end = slots;
  predictor->previous = previous;
  return words;
}

/* The values of one execution, whose slots have just been encoded. */
static void encode_values(struct encoder *encoder, const struct block_state *state,
                          uint64_t values_word) {
  uint64_t number = values_word >> VALUES_COUNT_BITS;
  uint64_t end = number + (values_word & VALUES_COUNT_MASK);
  uint32_t passed = 0; /* of the block's writes */
  for (; number < end; number++) {
    const struct value *value = value_queue_take(encoder->values, number);
    trace_frame_value(&encoder->frame, value->write - passed, value->data, value->bytes);
    passed = value->write + 1;
  }
  encoder->frame.writes_without_value += state->writes - passed;
}

/* The execution at `words`, a whole one, and what follows it up to a marker. */
static const uint64_t *consume_executions(struct encoder *encoder, const uint64_t *words,
                                          const uint64_t *to) {
  const struct block_state *state = predictor_state(&encoder->predictor, (uint32_t)*words);
  encoder_make_room(encoder);
  if (encoder->values == NULL)
    return encode_executions(encoder, words, to);
  encode_executions(encoder, words, words + state->raw_words);
  encode_values(encoder, state, words[VALUES_WORD]);
  return words + state->raw_words;
}

const uint64_t *encoder_consume(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  const uint64_t *words = from;
  if (encoder->frame.is_open)
    trace_frame_pass_region_boundaries(&encoder->frame); /* Other threads have encoded since. */
  while (words < to) {
    if (word_is_marker(words[0])) {
      encode_marker(encoder, words);
      words += marker_words(words[0]);
    } else if (words + raw_words_of(words) <= to) {
      words = consume_executions(encoder, words, to);
    } else {
      break;
    }
    encoder->reached = words;
  }
  trace_frame_count_instructions(&encoder->frame);
  return words;
}
