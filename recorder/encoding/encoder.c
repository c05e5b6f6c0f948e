/* SPDX-License-Identifier: Apache-2.0 */
#include "encoder.h"

#include "polled_words.h"
#include "raw_words.h"
#include "record_format.h"
#include "varint.h"
#include "wait_loop.h"
#include "wait_path.h"

#include <string.h>

void encoder_init(struct encoder *encoder, uint32_t thread, uint32_t sequence, uint64_t position) {
  memset(encoder, 0, sizeof(*encoder));
  trace_frame_init(&encoder->frame, thread, sequence, position);
  predictor_init(&encoder->predictor);
}

void encoder_free(struct encoder *encoder) {
  trace_frame_free(&encoder->frame);
  wait_loop_free(encoder->loop);
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

static void tell_polling(struct encoder *encoder) {
  uint8_t fields[VARINT_BYTES_MAX];
  if (encoder->polling_instructions == 0)
    return;
  uint32_t bytes = (uint32_t)(varint_write(fields, encoder->polling_instructions) - fields);
  encoder_make_room(encoder);
  trace_frame_event(&encoder->frame, EVENT_POLLING, false, 0, fields, bytes);
  encoder->polling_instructions = 0;
}

static void encode_marker(struct encoder *encoder, const uint64_t *words) {
  struct trace_frame *frame = &encoder->frame;
  uint8_t type = marker_event(words[0]);
  bool has_clock = marker_has_clock(words[0]);
  const uint8_t *fields = (const uint8_t *)(words + 1 + (has_clock ? 1 : 0));
  if (type == MARKER_NOTHING)
    return;
  if (type == EVENT_CALL_BEGIN || type == EVENT_CALL_END)
    encoder->is_in_call = type == EVENT_CALL_BEGIN;
  if (type == EVENT_THREAD_EXIT) /* Nothing comes behind it. */
    tell_polling(encoder);
  if (type == EVENT_INTERRUPTED) { /* It stands in the frame of the block that it is about. */
    uint64_t executed = varint_read(fields);
    frame->instructions -= encoder->predictor.previous->instructions - executed;
  } else {
    encoder_make_room(encoder);
  }
  trace_frame_event(frame, type, has_clock, has_clock ? words[1] : 0, fields,
                    marker_field_bytes(words[0]));
}

static struct told_wait *told_at(struct encoder *encoder, uint64_t address) {
  return &encoder->told[(uint32_t)((address * 0x9e3779b97f4a7c15ull) >> 40) % TOLD_WAITS];
}

static void encode_wait(struct encoder *encoder, uint64_t address, uint64_t wake, uint64_t rounds,
                        uint64_t lends) {
  uint8_t fields[4 * VARINT_BYTES_MAX], *out = varint_write(fields, address);
  out = varint_write(out, wake);
  out = varint_write(out, rounds);
  out = varint_write(out, lends);
  encoder_make_room(encoder);
  /* Nobody saw the moment when it ended: it stands where the thread's last event stood. */
  trace_frame_event(&encoder->frame, EVENT_LENDING_SPIN_WAIT, true, encoder->frame.clock_last,
                    fields, (uint32_t)(out - fields));
  *told_at(encoder, address) = (struct told_wait){address, wake};
}

void encoder_wait(struct encoder *encoder, uint64_t address, uint64_t wake, uint64_t rounds) {
  /* A replay gives locks to whoever comes first. A round begins before it takes a lock and ends
   * behind where it gives it back: what the thread has here, it keeps. */
  if (!polled_word_is_lock(address))
    encode_wait(encoder, address, wake, rounds, 0);
}

bool encoder_learns_of_store(struct encoder *encoder, const uint64_t *marker,
                             struct polled_look *look) {
  if (!path_look(marker, look) || look->clock == 0 || polled_word_is_lock(look->address))
    return false;
  const struct told_wait *told = told_at(encoder, look->address);
  return told->address != look->address || told->clock != look->clock;
}

/* The next execution reads a polled word behind a store that the thread may not know of, or a lock
 * that it does not take: a replay has it wait while another thread holds the lock. */
static void encode_look(struct encoder *encoder, const uint64_t *marker) {
  struct polled_look look;
  bool learns = encoder_learns_of_store(encoder, marker, &look);
  if (learns || (look.only_reads && polled_word_is_own_lock(look.address)))
    encode_wait(encoder, look.address, look.clock, 0, look.lends);
}

void encoder_note(struct encoder *encoder, const uint64_t *marker) {
  if (marker_event(*marker) == MARKER_LOOK)
    encode_look(encoder, marker);
  else
    encode_marker(encoder, marker);
}

void encoder_release_left_out(struct encoder *encoder, const uint64_t *marker) {
  uint8_t fields[3 + 2 * VARINT_BYTES_MAX];
  uint8_t *out = varint_write(fields, varint_read((const uint8_t *)(marker + 2)));
  *out++ = RELEASE_LEFT_OUT;
  out = varint_write(varint_write(out, 0), 0);
  encoder_make_room(encoder);
  trace_frame_event(&encoder->frame, EVENT_SPIN_RELEASE, true, marker[1], fields,
                    (uint32_t)(out - fields));
}

/* Where the block's last execution stands, if it had the same addresses, not far before: the loop
 * that it is in may be waiting. */
static inline const uint64_t *same_before(struct encoder *encoder, struct block_state *state,
                                          const uint64_t *words) {
  const uint64_t *last = state->last;
  bool is_near = state->last_filling == encoder->filling && words - last <= ROUND_WORDS_MAX;
  state->last = words;
  state->last_filling = encoder->filling;
  if (!is_near || !words_are_equal(last, words, state->raw_words))
    return NULL;
  if (state->passed_over == 0)
    return last;
  state->passed_over--;
  if ((size_t)(words - last) == state->round_words)
    encoder->polling_instructions += state->round_instructions;
  return NULL;
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

/* Executions up to the first word that needs more than encoding: a marker, a round that may be one
 * of waiting (then `same` is where it began before), a block that this thread has not executed
 * before, a full frame, or the end. What the loop changes is kept out of memory that it writes
 * bytes to. */
static const uint64_t *encode_executions(struct encoder *encoder, const uint64_t *words,
                                         const uint64_t *to, const uint64_t **same) {
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
    if (same != NULL && may_poll(state)) {
      *same = same_before(encoder, state, words);
      if (*same != NULL)
        break;
    }
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

void encoder_consume_executions(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  while (from < to) {
    encoder_make_room(encoder);
    const struct block_state *state = predictor_state(&encoder->predictor, (uint32_t)*from);
    if (encoder->values == NULL) {
      from = encode_executions(encoder, from, to, NULL);
    } else {
      encode_executions(encoder, from, from + state->raw_words, NULL);
      encode_values(encoder, state, from[VALUES_WORD]);
      from += state->raw_words;
    }
  }
}

void encoder_consume_path(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  while (from < to) {
    if (word_is_marker(*from)) {
      encoder_note(encoder, from);
      from += marker_words(*from);
      continue;
    }
    const uint64_t *end = from;
    while (end < to && !word_is_marker(*end))
      end += raw_words_of(end);
    encoder_consume_executions(encoder, from, end);
    from = end;
  }
}

/* What waits in a synchronisation function is told by its event. */
static bool may_wait(const struct encoder *encoder) {
  return polled_words_are_watched && !encoder->is_in_call;
}

/* The executions at `words`, whole ones: as many as can be encoded at once. */
static const uint64_t *consume_executions(struct encoder *encoder, const uint64_t *words,
                                          const uint64_t *to, bool is_last) {
  struct block_state *state = predictor_state(&encoder->predictor, (uint32_t)*words);
  const uint64_t *same = NULL, *end = words + state->raw_words;
  if (encoder->values == NULL) {
    encoder_make_room(encoder);
    words = encode_executions(encoder, words, to, may_wait(encoder) ? &same : NULL);
    if (same == NULL)
      return words;
    end = words + raw_words_of(words);
  } else if (may_wait(encoder) && may_poll(state)) {
    same = same_before(encoder, state, words);
  }
  if (same != NULL) {
    const uint64_t *stopped = wait_loop_encode(encoder, same, words, to, is_last);
    if (encoder->is_waiting || stopped != words)
      return stopped;
  }
  encoder_consume_executions(encoder, words, end);
  return end;
}

static const uint64_t *consume(struct encoder *encoder, const uint64_t *words, const uint64_t *to,
                               bool is_last) {
  if (encoder->frame.is_open)
    trace_frame_pass_region_boundaries(&encoder->frame); /* Other threads have encoded since. */
  encoder->filling++;
  encoder->filled_from = words;
  const uint64_t *notes_end = words; /* A round begins before all that was noted of its block. */
  if (encoder->is_waiting)
    words = wait_loop_go_on(encoder, words, to, is_last);
  while (words < to && !encoder->is_waiting) {
    if (!word_is_marker(words[0])) {
      if (words + raw_words_of(words) > to)
        break;
      words = consume_executions(encoder, words, to, is_last);
      continue;
    }
    if (path_is_note(words) && words >= notes_end) {
      const uint64_t *stopped = wait_loop_at_look(encoder, words, to, is_last);
      if (encoder->is_waiting || stopped != words) {
        words = stopped;
        continue;
      }
      notes_end = path_behind_notes(words, to);
    }
    encoder_note(encoder, words);
    words += marker_words(words[0]);
  }
  tell_polling(encoder);
  trace_frame_count_instructions(&encoder->frame);
  return words;
}

const uint64_t *encoder_consume(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  return consume(encoder, from, to, false);
}

void encoder_consume_all(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  consume(encoder, from, to, true);
}
