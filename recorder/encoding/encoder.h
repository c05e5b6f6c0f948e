/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the raw words that instrumented code leaves in a thread's buffer into the streams of a
 * TRACE frame (raw_words.h says what stands in the buffer). */
#ifndef ENCODER_H
#define ENCODER_H

#include "predictor.h"
#include "trace_frame.h"
#include "value_queue.h"

struct encoder {
  struct trace_frame frame;
  struct predictor predictor;
  struct value_queue *values; /* what the executions wrote; NULL without --values */
  const uint64_t *reached;    /* what stands before it is in the frame */
};

void encoder_init(struct encoder *encoder, uint32_t thread, uint32_t sequence, uint64_t position);
void encoder_free(struct encoder *encoder);

/* Encodes the raw words [from, to). Stops before an execution that does not end by `to`; it must
 * stand at the front of the next call's words. Returns where it stopped. */
const uint64_t *encoder_consume(struct encoder *encoder, const uint64_t *from, const uint64_t *to);

/* Sees to it that the frame has room for the next execution or event. */
void encoder_make_room(struct encoder *encoder);

#endif
