/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses payloads and appends whole frames to the record, one write each, so that a frame is
 * either in the file or (when the machine fails in the middle) visibly cut. */
#ifndef FRAME_H
#define FRAME_H

#include "record_format.h"

#include <stddef.h>
#include <stdint.h>

/* Room for one frame. As many exist as frames are written at the same time. */
struct frame_buffer {
  struct frame_buffer *next;
  uint8_t *payload; /* the caller fills it and sets payload_bytes */
  uint32_t payload_bytes;
  size_t payload_capacity;
  uint8_t *stored; /* header and compressed payload */
  size_t stored_capacity;
  void *compressor; /* a ZSTD_CCtx in memory of its own */
};

void frame_init(void);
void frame_exit(void);
void frame_after_fork(void);
/* Creates the record of a child, with its INFO frame. */
void frame_create_record(void);
/* In a forked child that is recorded: what it writes goes to a record of its own. */
void frame_continue_in_child(void);

/* Whether the descriptor is that of the record. */
int frame_is_record(int descriptor);

/* A buffer with room for `payload_bytes`. */
struct frame_buffer *frame_buffer_take(size_t payload_bytes);
void frame_buffer_give_back(struct frame_buffer *buffer);

/* Compresses the payload, completes `frame` (codec and sizes) and appends it to the record. After a
 * failure the recording is stopped. */
void frame_append(struct frame_buffer *buffer, struct frame_description *frame);

#endif
