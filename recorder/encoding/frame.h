/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses payloads and appends whole frames to the record, one write each, so that a frame is
 * either in the file or (when the machine fails in the middle) visibly cut. */
#ifndef FRAME_H
#define FRAME_H

#include "record_format.h"

#include <stdbool.h>
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

/* In a forked child: the parent's record is not its. Where they share their descriptors, it is not
 * closed. */
void frame_forget_record(bool shares_descriptors);

/* Whether the descriptor is that of the record. */
int frame_is_record(int descriptor);
int frame_record(void);

/* A buffer with room for `payload_bytes`. */
struct frame_buffer *frame_buffer_take(size_t payload_bytes);
void frame_buffer_give_back(struct frame_buffer *buffer);

/* Compresses the payload, completes `frame` (codec and sizes) and appends it to the record. After a
 * failure the recording is stopped. */
void frame_append(struct frame_buffer *buffer, struct frame_description *frame);

/* Where the process was killed while a frame was written: writes it again. */
void frame_write_again(void);
/* Whether it is the last frame that was written. */
bool frame_is_last(enum frame_kind kind, uint32_t thread, uint32_t sequence);
/* With which block the CODE frame with this number ends, if that is the last one; 0 otherwise. */
uint32_t frame_last_blocks(uint32_t sequence);

#endif
