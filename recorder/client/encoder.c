/* SPDX-License-Identifier: Apache-2.0 */
#include "encoder.h"

#include "dr_api.h"

#include "code_table.h"
#include "frame.h"
#include "record_format.h"
#include "recording.h"
#include "region_of_interest.h"
#include "varint.h"

#include <string.h>

/* When a frame is written: large enough that what the predictors have to learn anew costs little,
 * small enough that readers hold many of them. */
#define FRAME_STREAM_BYTES (2u << 20)
#define FRAME_INSTRUCTIONS (1u << 22)
#define FRAME_EVENT_BYTES (1u << 20) /* an event has at least one */
/* Longer loops are not looked at. */
#define SPIN_BLOCKS_MAX 9u
/* A block can have this many slots at most (see block_plan.c); an event this many bytes. */
#define BLOCK_SLOTS_MAX 8192u
#define STREAM_BYTES_MAX (FRAME_STREAM_BYTES + BLOCK_SLOTS_MAX * VARINT_BYTES_MAX)

/* What the predictors know of one slot, beside where its value stands in the raw words. */
struct slot_state {
  uint64_t last;
  uint64_t stride;
  uint64_t displacement;
  uint64_t raw;
};

struct block_state {
  uint32_t epoch;
  uint32_t next; /* id of the block that came after it the last time */
  uint32_t id;
  uint16_t instructions;
  uint16_t slots;
  uint16_t raw_words;
  uint16_t flags;
  struct slot_state slot[];
};

static void stream_init(struct stream *stream, size_t capacity) {
  stream->bytes = stream->end = pages_allocate(capacity);
  stream->capacity = capacity;
}

static size_t stream_size(const struct stream *stream) {
  return (size_t)(stream->end - stream->bytes);
}

static void stream_reserve(struct stream *stream, size_t bytes) {
  size_t used = stream_size(stream);
  if (used + bytes <= stream->capacity)
    return;
  struct stream larger;
  stream_init(&larger, (used + bytes) * 2);
  memcpy(larger.bytes, stream->bytes, used);
  larger.end = larger.bytes + used;
  pages_free(stream->bytes, stream->capacity);
  *stream = larger;
}

void encoder_init(struct encoder *encoder, uint32_t thread, uint32_t sequence, uint64_t position) {
  memset(encoder, 0, sizeof(*encoder));
  encoder->thread = thread;
  encoder->sequence = sequence;
  encoder->position = position;
  encoder->nothing = arena_allocate(&encoder->arena, sizeof(struct block_state));
  stream_init(&encoder->control, STREAM_BYTES_MAX);
  stream_init(&encoder->slots, STREAM_BYTES_MAX);
  stream_init(&encoder->events, 1u << 16);
}

void encoder_free(struct encoder *encoder) {
  pages_free(encoder->control.bytes, encoder->control.capacity);
  pages_free(encoder->slots.bytes, encoder->slots.capacity);
  pages_free(encoder->events.bytes, encoder->events.capacity);
  if (encoder->states_capacity != 0)
    pages_free(encoder->states, encoder->states_capacity * sizeof(encoder->states[0]));
  arena_free(&encoder->arena);
}

static void begin_frame(struct encoder *encoder) {
  encoder->has_frame = true;
  encoder->epoch++;
  encoder->control.end = encoder->control.bytes;
  encoder->slots.end = encoder->slots.bytes;
  encoder->events.end = encoder->events.bytes;
  encoder->run = encoder->instructions = encoder->instructions_counted = 0;
  encoder->clock_start = encoder->clock_last = clock_now();
  encoder->previous = encoder->nothing;
  encoder->nothing->next = 0;
}

/* What the process has encoded beside this frame. */
static uint64_t encoded_beside_frame(const struct encoder *encoder) {
  return __atomic_load_n(&recording.control->instructions, __ATOMIC_RELAXED) -
         encoder->instructions_counted;
}

static void count_instructions(struct encoder *encoder) {
  __atomic_add_fetch(&recording.control->instructions,
                     encoder->instructions - encoder->instructions_counted, __ATOMIC_RELAXED);
  encoder->instructions_counted = encoder->instructions;
}

static uint8_t *append_stream(uint8_t *out, uint8_t **directory, uint32_t id, const void *bytes,
                              size_t count) {
  uint32_t length = (uint32_t)count;
  memcpy(*directory, &id, 4);
  memcpy(*directory + 4, &length, 4);
  *directory += 8;
  memcpy(out, bytes, count);
  return out + count;
}

void encoder_write_frame(struct encoder *encoder) {
  if (!encoder->has_frame)
    return;
  code_table_write_pending();
  if (encoder->run != 0)
    encoder->control.end = varint_write(encoder->control.end, encoder->run);
  uint64_t clock[2] = {encoder->clock_start, clock_now()};
  size_t control_bytes = stream_size(&encoder->control), slot_bytes = stream_size(&encoder->slots);
  size_t event_bytes = stream_size(&encoder->events);
  uint32_t streams = 4;
  size_t directory_bytes = 4 + 8 * streams;
  size_t bytes = directory_bytes + control_bytes + slot_bytes + event_bytes + sizeof(clock);
  struct frame_buffer *buffer = frame_buffer_take(bytes);
  memcpy(buffer->payload, &streams, 4);
  uint8_t *directory = buffer->payload + 4, *out = buffer->payload + directory_bytes;
  out = append_stream(out, &directory, STREAM_CONTROL, encoder->control.bytes, control_bytes);
  out = append_stream(out, &directory, STREAM_SLOTS, encoder->slots.bytes, slot_bytes);
  out = append_stream(out, &directory, STREAM_EVENTS, encoder->events.bytes, event_bytes);
  append_stream(out, &directory, STREAM_CLOCK, clock, sizeof(clock));
  buffer->payload_bytes = (uint32_t)bytes;
  struct frame_description frame = {.kind = FRAME_TRACE,
                                    .thread = encoder->thread,
                                    .sequence = encoder->sequence,
                                    .instructions = encoder->instructions,
                                    .position = encoder->position};
  frame_append(buffer, &frame);
  frame_buffer_give_back(buffer);
  count_instructions(encoder);
  encoder->sequence++;
  encoder->position += encoder->instructions;
  encoder->has_frame = false;
  encoder->instructions_end = 0; /* The next execution or event begins a frame. */
}

static void grow_states(struct encoder *encoder, uint32_t id) {
  uint32_t capacity = encoder->states_capacity == 0 ? 1u << 14 : encoder->states_capacity;
  while (capacity <= id)
    capacity *= 2;
  struct block_state **states = pages_allocate(capacity * sizeof(states[0]));
  if (encoder->states_capacity != 0) {
    memcpy(states, encoder->states, encoder->states_capacity * sizeof(states[0]));
    pages_free(encoder->states, encoder->states_capacity * sizeof(states[0]));
  }
  encoder->states = states;
  encoder->states_capacity = capacity;
}

/* The state of a block that this thread has not executed before. */
static struct block_state *state_create(struct encoder *encoder, uint32_t id) {
  if (id >= encoder->states_capacity)
    grow_states(encoder, id);
  const struct block *block = code_table_get(id);
  struct block_state *state =
      arena_allocate(&encoder->arena, sizeof(*state) + block->slots * sizeof(struct slot_state));
  state->id = id;
  state->instructions = block->instructions;
  state->slots = block->slots;
  state->raw_words = block->raw_words;
  state->flags = block->flags;
  for (uint32_t i = 0; i < block->slots; i++) {
    state->slot[i].displacement = (uint64_t)block->slot[i].displacement;
    state->slot[i].raw = block->slot[i].raw;
  }
  encoder->states[id] = state;
  return state;
}

static inline struct block_state *state_of(struct encoder *encoder, uint32_t id) {
  if (id < encoder->states_capacity && encoder->states[id] != NULL)
    return encoder->states[id];
  return state_create(encoder, id);
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
    if (difference == 0) {
      *out++ = 0;
    } else {
      slot->stride = stride;
      out = svarint_write(out, (int64_t)difference);
    }
  }
  return out;
}

/* Words for the pair that ends a run, in the worst case, are always free: a full stream ends the
 * frame before. */
static inline void encode_block(struct encoder *encoder, struct block_state *state,
                                const uint64_t *words) {
  struct block_state *previous = encoder->previous;
  if (previous->next == state->id) {
    encoder->run++;
  } else {
    uint8_t *out = varint_write(encoder->control.end, encoder->run);
    encoder->control.end = varint_write(out, state->id);
    encoder->run = 0;
    previous->next = state->id;
  }
  if (state->epoch != encoder->epoch) {
    state->epoch = encoder->epoch;
    state->next = 0;
    encoder->slots.end = encode_first_slots(state, words, encoder->slots.end);
  } else {
    encoder->slots.end = encode_slots(state, words, encoder->slots.end);
  }
  encoder->instructions += state->instructions;
  encoder->previous = state;
}

static void encode_event(struct encoder *encoder, uint8_t type, bool has_clock, uint64_t clock,
                         const uint8_t *fields, uint32_t field_bytes) {
  stream_reserve(&encoder->control, 2 * VARINT_BYTES_MAX);
  uint8_t *out = varint_write(encoder->control.end, encoder->run);
  encoder->run = 0;
  *out++ = 0;
  encoder->control.end = out;
  stream_reserve(&encoder->events, 1 + VARINT_BYTES_MAX + field_bytes);
  out = encoder->events.end;
  *out++ = type;
  if (has_clock) {
    out = svarint_write(out, (int64_t)(clock - encoder->clock_last));
    encoder->clock_last = clock;
  }
  memcpy(out, fields, field_bytes);
  encoder->events.end = out + field_bytes;
}

static void encode_marker(struct encoder *encoder, const uint64_t *words) {
  uint8_t type = marker_event(words[0]);
  bool has_clock = marker_has_clock(words[0]);
  const uint8_t *fields = (const uint8_t *)(words + 1 + has_clock);
  if (type == EVENT_INTERRUPTED) {
    uint64_t executed = 0;
    for (uint32_t i = 0; i < marker_field_bytes(words[0]); i++)
      executed |= (uint64_t)(fields[i] & 0x7f) << (7 * i);
    encoder->instructions -= encoder->previous->instructions - executed;
  }
  encode_event(encoder, type, has_clock, has_clock ? words[1] : 0, fields,
               marker_field_bytes(words[0]));
}

/* The frame ends after so many instructions, unless a boundary of the region of interest comes
 * first. */
static void set_instructions_end(struct encoder *encoder) {
  uint64_t boundary = region_of_interest_boundary();
  encoder->instructions_end = FRAME_INSTRUCTIONS;
  if (boundary == UINT64_MAX)
    return;
  uint64_t beside = encoded_beside_frame(encoder);
  if (boundary <= beside)
    encoder->instructions_end = 0;
  else if (boundary - beside < FRAME_INSTRUCTIONS)
    encoder->instructions_end = boundary - beside;
}

static void pass_region_boundaries(struct encoder *encoder) {
  uint64_t reached = encoded_beside_frame(encoder) + encoder->instructions;
  uint64_t boundary;
  while ((boundary = region_of_interest_boundary()) <= reached && boundary != UINT64_MAX) {
    uint8_t passed = region_of_interest_pass(boundary);
    if (passed != 0)
      encode_event(encoder, EVENT_ROI, false, 0, &passed, 1);
  }
  set_instructions_end(encoder);
}

/* Whether something other than the next execution or event is due. */
static inline bool is_due(const struct encoder *encoder) {
  return encoder->instructions >= encoder->instructions_end ||
         stream_size(&encoder->slots) >= FRAME_STREAM_BYTES ||
         stream_size(&encoder->control) >= FRAME_STREAM_BYTES ||
         stream_size(&encoder->events) >= FRAME_EVENT_BYTES;
}

static void do_what_is_due(struct encoder *encoder) {
  if (encoder->has_frame)
    pass_region_boundaries(encoder);
  if (!encoder->has_frame || is_due(encoder)) {
    encoder_write_frame(encoder);
    begin_frame(encoder);
    pass_region_boundaries(encoder);
  }
}

/* Room for the next execution or event in the frame that is being filled. */
static inline void make_room(struct encoder *encoder) {
  if (is_due(encoder))
    do_what_is_due(encoder);
}

/* The words of one round of the loop that may begin at `from`, up to where its first block comes
 * again; 0 where there is none that only reads. */
static size_t spin_round_words(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  const uint64_t *at = from;
  bool reads = false;
  for (uint32_t blocks = 0; blocks < SPIN_BLOCKS_MAX; blocks++) {
    if (at >= to || word_is_marker(*at))
      return 0;
    if (at != from && *at == *from)
      return reads ? (size_t)(at - from) : 0;
    const struct block_state *state = state_of(encoder, (uint32_t)*at);
    if ((state->flags & BLOCK_WRITES) != 0)
      return 0;
    reads |= (state->flags & BLOCK_READS) != 0;
    at += state->raw_words;
  }
  return 0;
}

static bool words_are_equal(const uint64_t *one, const uint64_t *other, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (one[i] != other[i])
      return false;
  }
  return true;
}

static void encode_round(struct encoder *encoder, const uint64_t *words, size_t count) {
  const uint64_t *end = words + count;
  while (words < end) {
    struct block_state *state = state_of(encoder, (uint32_t)*words);
    make_room(encoder);
    encode_block(encoder, state, words);
    words += state->raw_words;
  }
}

/* The block that left the loop: the last one of the unfinished round at `after` that was executed
 * as in the round at `round`, or the round's last where there is none. Sets where its words are. */
static const struct block_state *spin_exit(struct encoder *encoder, const uint64_t *round,
                                           size_t count, const uint64_t *after, const uint64_t *to,
                                           const uint64_t **words) {
  const struct block_state *last = NULL, *unfinished = NULL;
  bool is_as_before = true;
  for (const uint64_t *at = round; at < round + count; at += last->raw_words) {
    const uint64_t *now = after + (at - round);
    last = state_of(encoder, (uint32_t)*at);
    is_as_before =
        is_as_before && now + last->raw_words <= to && words_are_equal(at, now, last->raw_words);
    if (is_as_before)
      unfinished = last;
    if (is_as_before || unfinished == NULL)
      *words = at;
  }
  return unfinished != NULL ? unfinished : last;
}

static uint64_t first_load(const struct block_state *state, const uint64_t *words) {
  const struct block *block = code_table_get(state->id);
  for (uint32_t i = 0; i < block->slots; i++) {
    if (block->slot[i].kind == SLOT_LOAD)
      return words[block->slot[i].raw] + (uint64_t)block->slot[i].displacement;
  }
  return 0;
}

/* The loop has ended: its rounds were waiting if the block that left it had just read memory; if
 * not, it was counting, and its rounds are work. */
static void end_spin(struct encoder *encoder, const uint64_t *round, size_t count,
                     const uint64_t *after, const uint64_t *to) {
  const uint64_t *exit_words = round;
  const struct block_state *exit = spin_exit(encoder, round, count, after, to, &exit_words);
  if ((exit->flags & BLOCK_READS) == 0) {
    for (; encoder->spin_rounds > 0; encoder->spin_rounds--)
      encode_round(encoder, round, count);
  } else if (encoder->spin_rounds > 0) {
    uint8_t fields[2 * VARINT_BYTES_MAX], *out = fields;
    out = varint_write(out, first_load(exit, exit_words));
    out = varint_write(out, encoder->spin_rounds);
    make_room(encoder);
    /* Nobody saw the moment when it ended: it stands where the thread's last event stood. */
    encode_event(encoder, EVENT_SPIN_WAIT, true, encoder->clock_last, fields,
                 (uint32_t)(out - fields));
  }
  encoder->is_spinning = false;
  encoder->spin_rounds = 0;
}

/* Encodes the loop that may begin at `words`: one round, and how many more there were. Returns
 * where it stopped: behind the loop, or before its last round where it may go on behind `to`. NULL
 * where there is no loop. */
static const uint64_t *encode_spin(struct encoder *encoder, const uint64_t *words,
                                   const uint64_t *to, bool is_last) {
  size_t count = encoder->spin_words;
  if (!encoder->is_spinning) {
    count = spin_round_words(encoder, words, to);
    if (count == 0)
      return NULL;
    encode_round(encoder, words, count);
    encoder->is_spinning = true;
    encoder->spin_words = count;
  }
  const uint64_t *at = words + count;
  for (; at + count <= to && words_are_equal(words, at, count); at += count)
    encoder->spin_rounds++;
  size_t rest = (size_t)(to - at);
  if (!is_last && rest < count && words_are_equal(words, at, rest))
    return at - count;
  end_spin(encoder, words, count, at, to);
  return at;
}

static bool may_spin(const struct block_state *state) {
  return (state->flags & (BLOCK_HAS_PAUSE | BLOCK_REPEATS_ITSELF)) != 0;
}

static const uint64_t *consume(struct encoder *encoder, const uint64_t *words, const uint64_t *to,
                               bool is_last) {
  if (encoder->has_frame)
    set_instructions_end(encoder); /* Other threads have encoded since. */
  while (words < to) {
    if (word_is_marker(words[0])) {
      size_t count = marker_words(words[0]);
      if (marker_event(words[0]) != EVENT_INTERRUPTED)
        make_room(encoder);
      encode_marker(encoder, words);
      words += count;
      continue;
    }
    struct block_state *state = state_of(encoder, (uint32_t)words[0]);
    if (words + state->raw_words > to)
      break;
    if (may_spin(state)) {
      const uint64_t *end = encode_spin(encoder, words, to, is_last);
      if (encoder->is_spinning) {
        words = end;
        break;
      }
      if (end != NULL) {
        words = end;
        continue;
      }
    }
    make_room(encoder);
    encode_block(encoder, state, words);
    words += state->raw_words;
  }
  count_instructions(encoder);
  return words;
}

const uint64_t *encoder_consume(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  return consume(encoder, from, to, false);
}

void encoder_consume_all(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  consume(encoder, from, to, true);
}

static size_t record_words(const uint64_t *record) {
  return word_is_marker(*record) ? marker_words(*record)
                                 : code_table_get((uint32_t)*record)->raw_words;
}

const uint64_t *raw_words_last_record(const uint64_t *from, const uint64_t *to) {
  const uint64_t *last = NULL;
  for (; from < to; from += record_words(from))
    last = from;
  return last;
}

const uint64_t *raw_words_last_start(const uint64_t *from, const uint64_t *to) {
  while (from < to) {
    size_t count = record_words(from);
    if (from + count > to)
      return from;
    from += count;
  }
  return from;
}
