/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include "arena.h"
#include "child_info.h"
#include "platform.h"
#include "raw_system_call.h"
#include "recording.h"

#define ZSTD_STATIC_LINKING_ONLY
#include "zstd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

/* The streams are mostly zeros; more effort makes them hardly smaller and the program slower. */
#define COMPRESSION_LEVEL 1

static struct {
  int file; /* negative: none */
  void *lock;
  struct frame_buffer *idle;
} frames;

static void fail(uint32_t error) {
  recording.control->write_error = error;
  recording_stop(STOP_WRITE_FAILED);
}

static void open_record(void) {
  char path[RECORD_PATH_BYTES];
  recording_path(path);
  frames.file = platform_open_to_append(path);
  if (frames.file < 0)
    fail(ENOENT);
}

void frame_init(void) {
  frames.lock = platform_mutex_create();
  if (recording_is_of_child() && recording.image == 1)
    frame_create_record();
  else
    open_record();
}

int frame_is_record(int descriptor) { return descriptor == frames.file; }

void frame_after_fork(void) { frames.lock = platform_mutex_create(); }

void frame_create_record(void) {
  char path[RECORD_PATH_BYTES];
  recording_path(path);
  raw_system_call(SYS_unlink, (uintptr_t)path, 0, 0); /* What a killed launcher has left. */
  long file =
      raw_system_call(SYS_open, (uintptr_t)path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) {
    fail((uint32_t)-file);
    return;
  }
  raw_system_call(SYS_close, (uintptr_t)file, 0, 0);
  open_record();
  child_info_append();
}

void frame_continue_in_child(void) {
  if (frames.file >= 0)
    platform_close_file(frames.file);
  frame_create_record();
}

static void buffer_release_memory(struct frame_buffer *buffer) {
  if (buffer->payload_capacity != 0)
    pages_free(buffer->payload, buffer->payload_capacity);
  if (buffer->stored_capacity != 0)
    pages_free(buffer->stored, buffer->stored_capacity);
  buffer->payload_capacity = buffer->stored_capacity = 0;
}

void frame_exit(void) {
  while (frames.idle != NULL) {
    struct frame_buffer *buffer = frames.idle;
    frames.idle = buffer->next;
    buffer_release_memory(buffer);
    pages_free(buffer->compressor, ZSTD_estimateCCtxSize(COMPRESSION_LEVEL));
    platform_free(buffer, sizeof(*buffer));
  }
  platform_mutex_destroy(frames.lock);
  if (frames.file >= 0)
    platform_close_file(frames.file);
}

struct frame_buffer *frame_buffer_take(size_t payload_bytes) {
  platform_mutex_lock(frames.lock);
  struct frame_buffer *buffer = frames.idle;
  if (buffer != NULL)
    frames.idle = buffer->next;
  platform_mutex_unlock(frames.lock);
  if (buffer == NULL) {
    buffer = platform_allocate(sizeof(*buffer));
    memset(buffer, 0, sizeof(*buffer));
    size_t workspace_bytes = ZSTD_estimateCCtxSize(COMPRESSION_LEVEL);
    buffer->compressor = ZSTD_initStaticCCtx(pages_allocate(workspace_bytes), workspace_bytes);
  }
  if (payload_bytes > buffer->payload_capacity) {
    buffer_release_memory(buffer);
    buffer->payload_capacity = payload_bytes + payload_bytes / 4;
    buffer->payload = pages_allocate(buffer->payload_capacity);
    buffer->stored_capacity = FRAME_HEADER_BYTES + ZSTD_compressBound(buffer->payload_capacity);
    buffer->stored = pages_allocate(buffer->stored_capacity);
  }
  return buffer;
}

void frame_buffer_give_back(struct frame_buffer *buffer) {
  platform_mutex_lock(frames.lock);
  buffer->next = frames.idle;
  frames.idle = buffer;
  platform_mutex_unlock(frames.lock);
}

static void write_whole(const uint8_t *bytes, size_t count) {
  while (count != 0) {
    ptrdiff_t written = platform_write_file(frames.file, bytes, count);
    if (written <= 0) {
      recording.control->write_error = written < 0 ? (uint32_t)-written : ENOSPC;
      recording_stop(STOP_WRITE_FAILED);
      return;
    }
    bytes += written;
    count -= (size_t)written;
  }
}

void frame_append(struct frame_buffer *buffer, struct frame_description *frame) {
  uint8_t *stored = buffer->stored + FRAME_HEADER_BYTES;
  size_t stored_bytes =
      ZSTD_compressCCtx(buffer->compressor, stored, buffer->stored_capacity - FRAME_HEADER_BYTES,
                        buffer->payload, buffer->payload_bytes, COMPRESSION_LEVEL);
  frame->version = RECORD_VERSION;
  frame->codec = CODEC_ZSTD;
  if (ZSTD_isError(stored_bytes)) { /* Cannot be: the room is enough. Then it goes as it is. */
    frame->codec = CODEC_STORED;
    stored_bytes = buffer->payload_bytes;
    memcpy(stored, buffer->payload, stored_bytes);
  }
  frame->stored_bytes = (uint32_t)stored_bytes;
  frame->raw_bytes = buffer->payload_bytes;
  frame_header_write(buffer->stored, frame, stored);
  if (!recording.is_stopped)
    write_whole(buffer->stored, FRAME_HEADER_BYTES + stored_bytes);
}
