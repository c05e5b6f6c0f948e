/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_ends.h"

#include "channel_key.h"
#include "channels.h"
#include "child_end.h"
#include "raw_system_call.h"
#include "recording.h"
#include "supply_events.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define LIST_BYTES 4096
/* Newer than the headers may be. */
#define CALL_CLOSE_RANGE 436
#define RANGE_CLOSES_ON_EXEC 4

/* As the kernel has it. */
struct directory_entry {
  uint64_t inode;
  int64_t offset;
  uint16_t bytes;
  uint8_t type;
  char name[];
};

/* What becomes of the descriptors of a range. */
struct closing {
  struct thread *thread;
  uint32_t first, last;
  bool on_exec; /* only those that an exec closes */
  bool by_end;  /* the process ends */
};

/* Where bytes may be written; 0: nowhere. */
static uint64_t written_key(int descriptor) {
  uint64_t key = channel_key_of_descriptor(descriptor);
  if (key == 0 || channel_kind(key) != CHANNEL_OF_BYTES)
    return 0;
  long flags = raw_system_call(SYS_fcntl, (uintptr_t)descriptor, F_GETFL, 0);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? key : 0;
}

static void close_one(const struct closing *closing, int descriptor) {
  if (closing->on_exec &&
      (raw_system_call(SYS_fcntl, (uintptr_t)descriptor, F_GETFD, 0) & FD_CLOEXEC) == 0)
    return;
  uint64_t key = written_key(descriptor);
  if (key == 0)
    return;
  if (closing->by_end)
    channels_end(key, recording_number(recording.control) + 1);
  else
    supply_events_made(closing->thread, channels_end(key, 0));
}

static bool parse_descriptor(const char *name, uint32_t *descriptor) {
  *descriptor = 0;
  for (; *name >= '0' && *name <= '9'; name++)
    *descriptor = *descriptor * 10 + (uint32_t)(*name - '0');
  return *name == '\0';
}

static void close_listed(const struct closing *closing, const char *list, long bytes) {
  for (long at = 0; at < bytes;) {
    const struct directory_entry *entry = (const struct directory_entry *)(list + at);
    uint32_t descriptor;
    if (parse_descriptor(entry->name, &descriptor) && descriptor >= closing->first &&
        descriptor <= closing->last)
      close_one(closing, (int)descriptor);
    at += entry->bytes;
  }
}

static void close_range_of(const struct closing *closing) {
  _Alignas(struct directory_entry) char list[LIST_BYTES];
  long folder =
      raw_system_call(SYS_open, (uintptr_t)"/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  long bytes;
  while (folder >= 0 && (bytes = raw_system_call(SYS_getdents64, (uintptr_t)folder, (uintptr_t)list,
                                                 sizeof(list))) > 0)
    close_listed(closing, list, bytes);
  if (folder >= 0)
    raw_system_call(SYS_close, (uintptr_t)folder, 0, 0);
}

void stream_ends_before_call(struct thread *thread, const struct system_call *call) {
  const uint64_t *argument = call->argument;
  struct closing closing = {.thread = thread, .last = UINT_MAX};
  switch (call->x86_64) {
  case SYS_close:
    close_one(&closing, (int)argument[0]);
    break;
  case SYS_dup2:
  case SYS_dup3:
    if (argument[0] != argument[1])
      close_one(&closing, (int)argument[1]);
    break;
  case SYS_shutdown:
    if (argument[1] != SHUT_RD)
      close_one(&closing, (int)argument[0]);
    break;
  case CALL_CLOSE_RANGE:
    closing.first = (uint32_t)argument[0];
    closing.last = (uint32_t)argument[1];
    if ((argument[2] & RANGE_CLOSES_ON_EXEC) == 0)
      close_range_of(&closing);
    break;
  case SYS_execve:
  case SYS_execveat:
    closing.on_exec = true;
    close_range_of(&closing);
    break;
  case SYS_exit_group:
    closing.by_end = true;
    close_range_of(&closing);
    break;
  default:
    break;
  }
}

static bool asks_for_bytes(const struct system_call *call) {
  return (call->x86_64 != SYS_read && call->x86_64 != SYS_recvfrom) || call->argument[2] != 0;
}

void stream_end_after_read(struct thread *thread, const struct system_call *call) {
  uint64_t key = asks_for_bytes(call) ? channel_key_of_descriptor((int)call->argument[0]) : 0;
  if (key == 0 || channel_kind(key) != CHANNEL_OF_BYTES)
    return;
  struct channel_end end = channels_look_at_end(key);
  if (end.process > 0)
    child_end_send(thread, (uint64_t)end.process - 1);
  else
    supply_events_consumed(thread, end.edge);
}
