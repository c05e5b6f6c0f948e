/* SPDX-License-Identifier: Apache-2.0 */
/* The TRACE frame that a thread is filling: its streams, what its header will say, and when it is
 * full. */
#ifndef TRACE_FRAME_H
#define TRACE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When a frame is written: large enough that what the predictors have to learn anew costs little,
 * small enough that readers hold many of them. */
#define FRAME_STREAM_BYTES (2u << 20)
#define FRAME_INSTRUCTIONS (1u << 22)
#define FRAME_EVENT_BYTES (1u << 20) /* an event has at least one */

struct stream {
  uint8_t *bytes;
  uint8_t *end; /* of what is written */
  size_t capacity;
};

struct trace_frame {
  uint32_t thread;
  uint32_t sequence; /* of the frame being filled, or the next */
  uint64_t position; /* instructions in the frames before */
  bool is_open;
  struct stream control, slots, events;
  struct stream values;          /* no memory without --values */
  uint64_t writes_without_value; /* executed since the last value */
  uint64_t run;                  /* right predictions since the last pair */
  uint64_t instructions;
  uint64_t instructions_end;     /* where something other than the next block is due */
  uint64_t instructions_counted; /* of them, in the process's count */
  uint64_t clock_start;
  uint64_t clock_last; /* of the last event that has one, in an earlier frame too */
};

void trace_frame_init(struct trace_frame *frame, uint32_t thread, uint32_t sequence,
                      uint64_t position);
void trace_frame_free(struct trace_frame *frame);

void trace_frame_open(struct trace_frame *frame);
/* Writes what is in it, if it is open. */
void trace_frame_write(struct trace_frame *frame);
/* Where the process was killed when it had just been written. */
void trace_frame_close_if_written(struct trace_frame *frame);

/* Appends an event; `fields` as they stand in the record, behind the clock. */
void trace_frame_event(struct trace_frame *frame, uint8_t type, bool has_clock, uint64_t clock,
                       const uint8_t *fields, uint32_t field_bytes);

/* Appends the bytes of a write before which `skipped` more have been executed. */
void trace_frame_value(struct trace_frame *frame, uint64_t skipped, const uint8_t *bytes,
                       uint32_t count);

/* Adds what was encoded since the last time to the process's count. */
void trace_frame_count_instructions(struct trace_frame *frame);

/* Sets where the frame ends or the next boundary of the region of interest comes, and sends the
 * events of boundaries that have been reached. */
void trace_frame_pass_region_boundaries(struct trace_frame *frame);

static inline size_t stream_size(const struct stream *stream) {
  return (size_t)(stream->end - stream->bytes);
}

/* Whether something other than the next execution or event is due, if only a frame to put it into.
 */
static inline bool trace_frame_is_due(const struct trace_frame *frame) {
  return frame->instructions >= frame->instructions_end ||
         stream_size(&frame->slots) >= FRAME_STREAM_BYTES ||
         stream_size(&frame->control) >= FRAME_STREAM_BYTES ||
         stream_size(&frame->events) >= FRAME_EVENT_BYTES ||
         stream_size(&frame->values) >= FRAME_STREAM_BYTES;
}

#endif
