/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptor_limit.h"

#include "raw_system_call.h"
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>

static struct rlimit files;

static void leave_to_next_image(void) {
  /* A vfork's child shares this memory, but the limit that the next image gets is its parent's. */
  if (process_id_of_caller() == recording.process)
    recording.control->open_files = files;
}

void descriptor_limit_init(void) {
  files = recording.control->open_files;
  /* A program that a child runs after a vfork, or by posix_spawn. */
  if (recording_is_of_child() && recording.image == 1) {
    const struct process_control *parent = recording_of_process(recording.control->parent);
    if (parent != NULL)
      files = parent->open_files;
    else
      raw_system_call(SYS_getrlimit, RLIMIT_NOFILE, (uintptr_t)&files, 0);
  }
  leave_to_next_image();
}

void descriptor_limit_continue_in_child(void) { leave_to_next_image(); }

void descriptor_limit_apply(void) {
  raw_system_call(SYS_setrlimit, RLIMIT_NOFILE, (uintptr_t)&files, 0);
}

struct rlimit descriptor_limit(void) { return files; }

void descriptor_limit_set(struct rlimit limit) {
  files = limit;
  leave_to_next_image();
}

static bool is_open(uint64_t descriptor) {
  return raw_system_call(SYS_fcntl, descriptor, F_GETFD, 0) >= 0;
}

/* Whether there is room for so many from `lowest` on. As a rule nothing is open at the limit, so
 * that one look is enough; where it is reached, each one below is looked at. */
static bool has_room(uint64_t lowest, uint32_t wanted) {
  for (uint64_t at = files.rlim_cur; wanted > 0; wanted--) {
    do {
      if (at <= lowest)
        return false;
      at--;
    } while (is_open(at));
  }
  return true;
}

static int64_t refusal_of_dup(uint64_t from, uint64_t to) {
  return from != to && to >= files.rlim_cur ? -EBADF : 0;
}

static int64_t refusal_of_fcntl(const uint64_t *argument) {
  uint32_t command = (uint32_t)argument[1], lowest = (uint32_t)argument[2];
  if ((command != F_DUPFD && command != F_DUPFD_CLOEXEC) || !is_open(argument[0]))
    return 0;
  if (lowest >= files.rlim_cur)
    return -EINVAL;
  return has_room(lowest, 1) ? 0 : -EMFILE;
}

static int64_t refusal(int number, const uint64_t *argument) {
  switch (number) {
  case SYS_dup:
    return !is_open(argument[0]) || has_room(0, 1) ? 0 : -EMFILE;
  case SYS_dup2:
  case SYS_dup3:
    return refusal_of_dup((uint32_t)argument[0], (uint32_t)argument[1]);
  case SYS_fcntl:
    return refusal_of_fcntl(argument);
  case SYS_pipe:
  case SYS_pipe2:
  case SYS_socketpair:
    return has_room(0, 2) ? 0 : -EMFILE;
  case SYS_open:
  case SYS_openat:
  case SYS_openat2:
  case SYS_creat:
  case SYS_open_by_handle_at:
  case SYS_socket:
  case SYS_accept:
  case SYS_accept4:
  case SYS_epoll_create:
  case SYS_epoll_create1:
  case SYS_eventfd:
  case SYS_eventfd2:
  case SYS_timerfd_create:
  case SYS_inotify_init:
  case SYS_inotify_init1:
  case SYS_memfd_create:
  case SYS_pidfd_open:
  case SYS_mq_open:
    return has_room(0, 1) ? 0 : -EMFILE;
  case SYS_signalfd:
  case SYS_signalfd4:
    return (int32_t)argument[0] != -1 || has_room(0, 1) ? 0 : -EMFILE;
  default:
    return 0;
  }
}

bool descriptor_limit_allows(int number, const uint64_t *argument, int64_t *error) {
  *error = refusal(number, argument);
  return *error == 0;
}
