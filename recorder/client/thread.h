/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded thread: its buffer of raw words, which instrumented code fills, and what becomes of
 * them. Behind the buffer lies a page that cannot be written: the store that meets it is how a full
 * buffer is noticed, at no cost for all others. */
#ifndef THREAD_H
#define THREAD_H

#include "encoder.h"

#include "dr_api.h"
#include <stdint.h>

/* Words of one execution at most: what may have to be moved when the buffer is full. */
#define EXECUTION_WORDS_MAX 4096u

struct thread {
  uint32_t id;
  bool is_recorded; /* false in children, and when the recording has stopped */
  void *drcontext;
  uint64_t *buffer;
  uint64_t *guard;     /* end of the buffer */
  uint64_t **position; /* where the next execution goes; instrumented code advances it */

  /* Inside a synchronisation function: where it was called. What was recorded since then is not the
   * program's work. */
  uint64_t *call_position;
  uint32_t call_depth;

  struct encoder encoder;
};

void threads_init(void);
void threads_exit(void);

/* The raw TLS slot that holds the position, for instrumented code. */
extern reg_id_t position_tls_segment;
extern uint position_tls_offset;

struct thread *thread_of(void *drcontext);

/* Appends an event; `fields` as they stand in the record, behind the clock. */
void thread_event(struct thread *thread, uint8_t type, const uint8_t *fields, size_t field_bytes);
void thread_event_clocked(struct thread *thread, uint8_t type, uint64_t clock,
                          const uint8_t *fields, size_t field_bytes);

/* Encodes what the buffer holds and makes room. Moves the position by a whole number of words,
 * down; returns by how many. What is being written at the position moves with it. */
size_t thread_drain(struct thread *thread);

/* Everything up to here goes to the record, in frames of its own. */
void thread_flush(struct thread *thread);

#endif
