/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_frame.h"

#include "arena.h"
#include "code_table.h"
#include "frame.h"
#include "record_format.h"
#include "recording.h"
#include "region_of_interest.h"
#include "varint.h"

#include <string.h>

/* What may still be written when a stream is just not full: one execution, whose slots take ten
 * bytes each at most, and the pair that ends a run. */
#define STREAM_BYTES_MAX (FRAME_STREAM_BYTES + (BLOCK_SLOTS_MAX + 4) * VARINT_BYTES_MAX)

static void stream_init(struct stream *stream, size_t capacity) {
  stream->bytes = stream->end = pages_allocate(capacity);
  stream->capacity = capacity;
}

static void stream_reserve(struct stream *stream, size_t bytes) {
  size_t used = stream_size(stream);
  if (stream->bytes == NULL)
    stream_init(stream, bytes > STREAM_BYTES_MAX ? bytes : STREAM_BYTES_MAX);
  if (used + bytes <= stream->capacity)
    return;
  struct stream larger;
  stream_init(&larger, (used + bytes) * 2);
  memcpy(larger.bytes, stream->bytes, used);
  larger.end = larger.bytes + used;
  pages_free(stream->bytes, stream->capacity);
  *stream = larger;
}

void trace_frame_init(struct trace_frame *frame, uint32_t thread, uint32_t sequence,
                      uint64_t position) {
  memset(frame, 0, sizeof(*frame));
  frame->thread = thread;
  frame->sequence = sequence;
  frame->position = position;
  stream_init(&frame->control, STREAM_BYTES_MAX);
  stream_init(&frame->slots, STREAM_BYTES_MAX);
  stream_init(&frame->events, 1u << 16);
}

void trace_frame_free(struct trace_frame *frame) {
  pages_free(frame->control.bytes, frame->control.capacity);
  pages_free(frame->slots.bytes, frame->slots.capacity);
  pages_free(frame->events.bytes, frame->events.capacity);
  if (frame->values.bytes != NULL)
    pages_free(frame->values.bytes, frame->values.capacity);
}

void trace_frame_open(struct trace_frame *frame) {
  frame->is_open = true;
  frame->control.end = frame->control.bytes;
  frame->slots.end = frame->slots.bytes;
  frame->events.end = frame->events.bytes;
  frame->values.end = frame->values.bytes;
  frame->writes_without_value = 0;
  frame->run = frame->instructions = frame->instructions_counted = 0;
  frame->instructions_end = FRAME_INSTRUCTIONS;
  /* All events that it will have are behind the last one; by now the clock may have passed them. */
  frame->clock_start = frame->clock_last;
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

static void close_frame(struct trace_frame *frame) {
  frame->is_open = false;
  frame->sequence++;
  frame->position += frame->instructions;
  frame->instructions_end = 0; /* The next execution or event opens a frame. */
}

void trace_frame_write(struct trace_frame *frame) {
  if (!frame->is_open)
    return;
  code_table_write_pending();
  if (frame->run != 0)
    frame->control.end = varint_write(frame->control.end, frame->run);
  uint64_t clock[2] = {frame->clock_start, clock_now()};
  size_t control_bytes = stream_size(&frame->control), slot_bytes = stream_size(&frame->slots);
  size_t event_bytes = stream_size(&frame->events), value_bytes = stream_size(&frame->values);
  uint32_t streams = value_bytes == 0 ? 4 : 5;
  size_t directory_bytes = 4 + 8 * streams;
  size_t bytes =
      directory_bytes + control_bytes + slot_bytes + event_bytes + sizeof(clock) + value_bytes;
  struct frame_buffer *buffer = frame_buffer_take(bytes);
  memcpy(buffer->payload, &streams, 4);
  uint8_t *directory = buffer->payload + 4, *out = buffer->payload + directory_bytes;
  out = append_stream(out, &directory, STREAM_CONTROL, frame->control.bytes, control_bytes);
  out = append_stream(out, &directory, STREAM_SLOTS, frame->slots.bytes, slot_bytes);
  out = append_stream(out, &directory, STREAM_EVENTS, frame->events.bytes, event_bytes);
  out = append_stream(out, &directory, STREAM_CLOCK, clock, sizeof(clock));
  if (value_bytes != 0)
    append_stream(out, &directory, STREAM_VALUES, frame->values.bytes, value_bytes);
  buffer->payload_bytes = (uint32_t)bytes;
  struct frame_description description = {.kind = FRAME_TRACE,
                                          .thread = frame->thread,
                                          .sequence = frame->sequence,
                                          .instructions = frame->instructions,
                                          .position = frame->position};
  frame_append(buffer, &description);
  frame_buffer_give_back(buffer);
  trace_frame_count_instructions(frame);
  close_frame(frame);
}

void trace_frame_close_if_written(struct trace_frame *frame) {
  if (frame->is_open && frame_is_last(FRAME_TRACE, frame->thread, frame->sequence))
    close_frame(frame);
}

void trace_frame_event(struct trace_frame *frame, uint8_t type, bool has_clock, uint64_t clock,
                       const uint8_t *fields, uint32_t field_bytes) {
  stream_reserve(&frame->control, 4 * VARINT_BYTES_MAX);
  uint8_t *out = varint_write(frame->control.end, frame->run);
  frame->run = 0;
  *out++ = 0;
  frame->control.end = out;
  stream_reserve(&frame->events, 1 + VARINT_BYTES_MAX + field_bytes);
  out = frame->events.end;
  *out++ = type;
  if (has_clock) {
    out = svarint_write(out, (int64_t)(clock - frame->clock_last));
    frame->clock_last = clock;
  }
  memcpy(out, fields, field_bytes);
  frame->events.end = out + field_bytes;
}

void trace_frame_value(struct trace_frame *frame, uint64_t skipped, const uint8_t *bytes,
                       uint32_t count) {
  stream_reserve(&frame->values, VARINT_BYTES_MAX + count);
  uint8_t *out = varint_write(frame->values.end, frame->writes_without_value + skipped);
  frame->writes_without_value = 0;
  memcpy(out, bytes, count);
  frame->values.end = out + count;
}

void trace_frame_count_instructions(struct trace_frame *frame) {
  __atomic_add_fetch(&recording.control->instructions,
                     frame->instructions - frame->instructions_counted, __ATOMIC_RELAXED);
  frame->instructions_counted = frame->instructions;
}

/* What the process has encoded beside this frame. */
static uint64_t encoded_beside(const struct trace_frame *frame) {
  return __atomic_load_n(&recording.control->instructions, __ATOMIC_RELAXED) -
         frame->instructions_counted;
}

void trace_frame_pass_region_boundaries(struct trace_frame *frame) {
  uint64_t beside = encoded_beside(frame);
  uint64_t boundary = region_of_interest_boundary();
  while (boundary != UINT64_MAX && boundary <= beside + frame->instructions) {
    uint8_t passed = region_of_interest_pass(boundary);
    if (passed != 0)
      trace_frame_event(frame, EVENT_ROI, false, 0, &passed, 1);
    boundary = region_of_interest_boundary();
  }
  bool is_before_end = boundary != UINT64_MAX && boundary - beside < FRAME_INSTRUCTIONS;
  frame->instructions_end = is_before_end ? boundary - beside : FRAME_INSTRUCTIONS;
}
