/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_writes.h"

#include "fields.h"
#include "mapped_files.h"
#include "platform.h"
#include "raw_system_call.h"
#include "record_format.h"
#include "selected_memory.h"
#include "system_call_outputs.h"

#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An event has at most so many bytes, and none reaches over the end of a page. */
#define PIECE_BYTES 4096u

static void send_bytes(struct thread *thread, uint8_t type, uint64_t address, const uint8_t *bytes,
                       size_t count) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, address);
  fields_bytes(&fields, bytes, count);
  fields_send(&fields, thread, type);
}

/* Leaves out the zeros at both ends, in whole words. */
static void send_what_is_not_zero(struct thread *thread, uint64_t address, const uint8_t *bytes,
                                  size_t count) {
  size_t first = 0, end = count;
  while (first < count && bytes[first] == 0)
    first++;
  while (end > first && bytes[end - 1] == 0)
    end--;
  if (first < end)
    send_bytes(thread, EVENT_INITIAL_BYTES, address + first, bytes + first, end - first);
}

/* Pages that cannot be read (behind a file's end, or without the right) are passed over. */
static void send_pieces(struct thread *thread, uint8_t type, uint64_t start, uint64_t end) {
  uint8_t bytes[PIECE_BYTES];
  while (start < end) {
    uint64_t piece_end = (start / PIECE_BYTES + 1) * PIECE_BYTES;
    if (piece_end > end)
      piece_end = end;
    size_t count = (size_t)(piece_end - start), read;
    if (platform_read((const void *)(uintptr_t)start, count, bytes, &read)) {
      if (type == EVENT_INITIAL_BYTES)
        send_what_is_not_zero(thread, start, bytes, count);
      else
        send_bytes(thread, type, start, bytes, count);
    }
    start = piece_end;
  }
}

static void send_selected(struct thread *thread, uint8_t type, uint64_t start, uint64_t bytes) {
  if (!values_are_recorded)
    return;
  uint64_t end = start + bytes < start ? UINT64_MAX : start + bytes, piece_start, piece_end;
  while (start < end && selected_memory_find(start, end, &piece_start, &piece_end)) {
    send_pieces(thread, type, piece_start, piece_end);
    start = piece_end;
  }
}

void kernel_writes_send(struct thread *thread, uint64_t start, uint64_t bytes) {
  send_selected(thread, EVENT_KERNEL_WRITE, start, bytes);
}

void initial_bytes_send(struct thread *thread, uint64_t start, uint64_t bytes) {
  send_selected(thread, EVENT_INITIAL_BYTES, start, bytes);
}

/* A piece of a file that a system call changed. */
struct file_change {
  struct thread *thread;
  uint64_t start, end; /* offsets in the file */
};

static void send_where_mapped(const struct file_mapping *mapping, void *user_data) {
  const struct file_change *change = user_data;
  uint64_t low = mapping->offset, high = mapping->offset + (mapping->end - mapping->start);
  uint64_t start = change->start > low ? change->start : low;
  uint64_t end = change->end < high ? change->end : high;
  if (start < end)
    kernel_writes_send(change->thread, mapping->start + (start - low), end - start);
}

static void send_file_change(struct thread *thread, int descriptor, uint64_t start, uint64_t end) {
  char path[KERNEL_MAP_NAME_MAX];
  struct file_change change = {thread, start, end};
  if (start < end && file_path_of(descriptor, path) && selected_memory_may_be_file(path))
    mapped_files_each(descriptor, send_where_mapped, &change);
}

/* What was written where the file's own position was, which is behind it now. */
static void send_written_before_position(struct thread *thread, int descriptor, int64_t bytes) {
  long position = raw_system_call(SYS_lseek, (uintptr_t)descriptor, 0, SEEK_CUR);
  if (position >= bytes)
    send_file_change(thread, descriptor, (uint64_t)(position - bytes), (uint64_t)position);
}

/* Of a call that was given the address of an offset, which it moved, or none. */
static void send_written_at(struct thread *thread, int descriptor, uint64_t offset_at,
                            int64_t bytes) {
  uint64_t offset;
  size_t read;
  if (offset_at == 0)
    send_written_before_position(thread, descriptor, bytes);
  else if (platform_read((const void *)(uintptr_t)offset_at, sizeof(offset), &offset, &read) &&
           offset >= (uint64_t)bytes)
    send_file_change(thread, descriptor, offset - (uint64_t)bytes, offset);
}

static void send_truncated(struct thread *thread, const struct system_call *call) {
  uint64_t old = call->flags, new = call->argument[1];
  send_file_change(thread, (int)call->argument[0], old < new ? old : new, UINT64_MAX);
}

static void send_changes_of_files(struct thread *thread, const struct system_call *call,
                                  int64_t result) {
  const uint64_t *argument = call->argument;
  switch (call->x86_64) {
  case SYS_write:
  case SYS_writev:
    send_written_before_position(thread, (int)argument[0], result);
    break;
  case SYS_pwrite64:
  case SYS_pwritev:
    send_file_change(thread, (int)argument[0], argument[3], argument[3] + (uint64_t)result);
    break;
  case SYS_pwritev2:
    if (argument[3] == UINT64_MAX)
      send_written_before_position(thread, (int)argument[0], result);
    else
      send_file_change(thread, (int)argument[0], argument[3], argument[3] + (uint64_t)result);
    break;
  case SYS_sendfile:
    send_written_before_position(thread, (int)argument[0], result);
    break;
  case SYS_copy_file_range:
  case SYS_splice:
    send_written_at(thread, (int)argument[2], argument[3], result);
    break;
  case SYS_fallocate:
    send_file_change(thread, (int)argument[0], argument[2],
                     (argument[1] & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0
                         ? UINT64_MAX
                         : argument[2] + argument[3]);
    break;
  case SYS_ftruncate:
    send_truncated(thread, call);
    break;
  case SYS_madvise:
    if (argument[2] == MADV_DONTNEED || argument[2] == MADV_REMOVE)
      kernel_writes_send(thread, argument[0], argument[1]);
    break;
  default:
    break;
  }
}

static void send_output(uint64_t start, uint64_t bytes, void *user_data) {
  kernel_writes_send(user_data, start, bytes);
}

void kernel_writes_after_call(struct thread *thread, const struct system_call *call,
                              int64_t result) {
  if (!values_are_recorded || (result < 0 && result >= -4095))
    return;
  system_call_outputs_each(call, result, send_output, thread);
  send_changes_of_files(thread, call, result);
}
