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
  /* The last one that was written, or is being. */
  struct {
    struct frame_description description;
    const uint8_t *bytes;
    size_t count;
    long offset; /* in the file */
    volatile bool is_written;
  } last;
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

int frame_record(void) { return frames.file; }

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

void frame_forget_record(bool shares_descriptors) {
  if (frames.file >= 0 && !shares_descriptors)
    platform_close_file(frames.file);
  frames.file = -1;
  frames.last.bytes = NULL;
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

static void write_last(const struct frame_description *frame, const uint8_t *bytes, size_t count) {
  frames.last.is_written = true;
  frames.last.description = *frame;
  frames.last.bytes = bytes;
  frames.last.count = count;
  frames.last.offset = raw_system_call(SYS_lseek, (uintptr_t)frames.file, 0, SEEK_END);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  frames.last.is_written = false;
  write_whole(bytes, count);
  frames.last.is_written = true;
}

void frame_append(struct frame_buffer *buffer, struct frame_description *frame) {
  uint8_t *stored = buffer->stored + FRAME_HEADER_BYTES;
  size_t stored_bytes =
      ZSTD_compressCCtx(buffer->compressor, stored, buffer->stored_capacity - FRAME_HEADER_BYTES,
                        buffer->payload, buffer->payload_bytes, COMPRESSION_LEVEL);
  frame->version = RECORD_VERSION;
  frame->codec = CODEC_ZSTD;
  /* No reader takes a small record for a large program. */
  bool is_too_small =
      frame->kind == FRAME_CODE && buffer->payload_bytes / RECORD_CODE_RATIO_MAX > stored_bytes;
  /* That it fails cannot be: the room is enough. */
  if (ZSTD_isError(stored_bytes) || is_too_small) {
    frame->codec = CODEC_STORED;
    stored_bytes = buffer->payload_bytes;
    memcpy(stored, buffer->payload, stored_bytes);
  }
  frame->stored_bytes = (uint32_t)stored_bytes;
  frame->raw_bytes = buffer->payload_bytes;
  frame_header_write(buffer->stored, frame, stored);
  if (!recording.is_stopped)
    write_last(frame, buffer->stored, FRAME_HEADER_BYTES + stored_bytes);
}

void frame_write_again(void) {
  if (frames.last.bytes == NULL || frames.last.is_written)
    return;
  raw_system_call(SYS_ftruncate, (uintptr_t)frames.file, (uintptr_t)frames.last.offset, 0);
  write_whole(frames.last.bytes, frames.last.count);
}

bool frame_is_last(enum frame_kind kind, uint32_t thread, uint32_t sequence) {
  const struct frame_description *last = &frames.last.description;
  return frames.last.bytes != NULL && last->kind == kind && last->thread == thread &&
         last->sequence == sequence;
}

uint32_t frame_last_blocks(uint32_t sequence) {
  const struct frame_description *last = &frames.last.description;
  return frame_is_last(FRAME_CODE, 0, sequence)
             ? (uint32_t)(last->position + last->instructions) - 1
             : 0;
}
