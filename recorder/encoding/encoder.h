/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the raw words that instrumented code leaves in a thread's buffer into the streams of a
 * TRACE frame (raw_words.h says what stands in the buffer). */
#ifndef ENCODER_H
#define ENCODER_H

#include "predictor.h"
#include "trace_frame.h"
#include "value_queue.h"
#include "wait_loop.h"

/* Looks at polled words that were told of last, so that none is told twice. */
#define TOLD_WAITS 64u

struct polled_look;

struct encoder {
  struct trace_frame frame;
  struct predictor predictor;
  struct value_queue *values; /* what the executions wrote; NULL without --values */

  struct own_range own[2];     /* addresses that only this thread uses */
  bool is_in_call;             /* the path of a synchronisation function is being encoded */
  const uint64_t *filled_from; /* the words that are being encoded, */
  uint32_t filling;            /* and which filling of the buffer they are */

  /* A loop that may be waiting (wait_loop.h): its end has not been seen yet. */
  bool is_waiting;
  struct wait_loop *loop;
  uint64_t polling_instructions; /* of rounds with the same addresses that were not left out */
  struct told_wait {
    uint64_t address, clock;
  } told[TOLD_WAITS];
};

void encoder_init(struct encoder *encoder, uint32_t thread, uint32_t sequence, uint64_t position);
void encoder_free(struct encoder *encoder);

/* Encodes the raw words [from, to). Stops before an execution that does not end by `to`, and before
 * the last round of a loop that may go on there; these must stand at the front of the next call's
 * words. Returns where it stopped. */
const uint64_t *encoder_consume(struct encoder *encoder, const uint64_t *from, const uint64_t *to);

/* Likewise, but nothing follows: loops end here. */
void encoder_consume_all(struct encoder *encoder, const uint64_t *from, const uint64_t *to);

/* Encodes executions that are known to be all that [from, to) holds. */
void encoder_consume_executions(struct encoder *encoder, const uint64_t *from, const uint64_t *to);

/* Encodes executions and the events between them. */
void encoder_consume_path(struct encoder *encoder, const uint64_t *from, const uint64_t *to);
/* Encodes what is noted at `marker` of stores to polled words, made or seen. */
void encoder_note(struct encoder *encoder, const uint64_t *marker);

/* The thread has waited for `address`, until the store with this place in the process clock (0:
 * unknown); `rounds` of its loop are left out. */
void encoder_wait(struct encoder *encoder, uint64_t address, uint64_t wake, uint64_t rounds);

/* Whether this marker is a look that saw another thread's store which the record does not say yet
 * that the thread has seen; then which one. */
bool encoder_learns_of_store(struct encoder *encoder, const uint64_t *marker,
                             struct polled_look *look);

/* The store of this marker is left out; that it happened is not. */
void encoder_release_left_out(struct encoder *encoder, const uint64_t *marker);

/* Sees to it that the frame has room for the next execution or event. */
void encoder_make_room(struct encoder *encoder);

#endif
