/* SPDX-License-Identifier: Apache-2.0 */
#include "readiness.h"

#include "baton.h"
#include "channel_key.h"
#include "platform.h"
#include "random_files.h"
#include "raw_system_call.h"
#include "signal_calls.h"
#include "thread.h"
#include "virtual_time.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull

/* --- one descriptor --- */

static bool is_ready(int descriptor, short events) {
  struct pollfd one = {.fd = descriptor, .events = events};
  return raw_system_call(SYS_poll, (uintptr_t)&one, 1, 0) != 0;
}

static bool can_read(struct thread *thread) {
  return is_ready((int)thread->system_call.argument[0], POLLIN);
}

static bool can_write(struct thread *thread) {
  return is_ready((int)thread->system_call.argument[0], POLLOUT);
}

static bool is_nonblocking(int descriptor) {
  const int get_flags = 3, nonblocking = 04000;
  long flags = raw_system_call(SYS_fcntl, (uintptr_t)descriptor, get_flags, 0);
  return flags < 0 || (flags & nonblocking) != 0;
}

static bool stat_of(int descriptor, struct stat *status) {
  return raw_system_call(SYS_fstat, (uintptr_t)descriptor, (uintptr_t)status, 0) == 0;
}

/* Whether it is a pipe, a socket or a terminal: what others make ready. */
static bool is_stream(const struct stat *status) {
  return !S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode) && !S_ISBLK(status->st_mode);
}

/* How long a socket waits at most. */
static uint64_t socket_until(struct thread *thread, int descriptor, int option) {
  struct timeval limit = {0};
  socklen_t bytes = sizeof(limit);
  if (raw_system_call_of_5(SYS_getsockopt, (uintptr_t)descriptor, SOL_SOCKET, (uintptr_t)option,
                           (uintptr_t)&limit, (uintptr_t)&bytes) != 0 ||
      (limit.tv_sec == 0 && limit.tv_usec == 0))
    return BATON_FOR_EVER;
  return virtual_time_in(thread,
                         (uint64_t)limit.tv_sec * NS_PER_S + (uint64_t)limit.tv_usec * 1000);
}

/* So much goes through at once where anything does. */
static bool is_whole(const struct system_call *call) {
  switch (call->x86_64) {
  case SYS_write:
  case SYS_sendto:
    return call->argument[2] <= PIPE_BUF;
  case SYS_writev:
    return false;
  case SYS_sendmsg:
  case SYS_sendmmsg:
    return socket_has_messages((int)call->argument[0]);
  case SYS_recvfrom:
    return (call->argument[3] & MSG_WAITALL) == 0;
  case SYS_recvmsg:
    return (call->argument[2] & MSG_WAITALL) == 0;
  case SYS_recvmmsg:
    return call->argument[4] == 0 &&
           (call->argument[2] == 1 || (call->argument[3] & MSG_WAITFORONE) != 0);
  default:
    return true;
  }
}

static bool asks_not_to_wait(const struct system_call *call) {
  switch (call->x86_64) {
  case SYS_recvfrom:
  case SYS_sendto:
  case SYS_recvmmsg:
  case SYS_sendmmsg:
    return (call->argument[3] & MSG_DONTWAIT) != 0;
  case SYS_recvmsg:
  case SYS_sendmsg:
    return (call->argument[2] & MSG_DONTWAIT) != 0;
  default:
    return false;
  }
}

static enum baton_call transfer(struct thread *thread, const struct system_call *call, bool reads,
                                bool is_alone, int64_t *result) {
  int descriptor = (int)call->argument[0];
  struct stat status;
  if (!stat_of(descriptor, &status))
    return CALL_GOES_ON;
  if (call->x86_64 == SYS_read && random_file_read(call, &status, result))
    return CALL_IS_MADE;
  if (!is_stream(&status))
    return CALL_GOES_ON;
  if (is_nonblocking(descriptor) || asks_not_to_wait(call))
    return CALL_GOES_ON;
  /* What is ready takes no time, however late the kernel is. */
  if (is_alone)
    return is_whole(call) && is_ready(descriptor, reads ? POLLIN : POLLOUT) ? CALL_GOES_ON
                                                                            : CALL_BLOCKS;
  if (!is_whole(call))
    return CALL_GOES_OUTSIDE;
  uint64_t until = socket_until(thread, descriptor, reads ? SO_RCVTIMEO : SO_SNDTIMEO);
  /* Another may have taken what was there when it was asked. */
  while (!is_ready(descriptor, reads ? POLLIN : POLLOUT)) {
    switch (baton_await(thread, reads ? can_read : can_write, until)) {
    case BATON_TIMED_OUT:
      *result = -EAGAIN;
      return CALL_IS_MADE;
    case BATON_INTERRUPTED:
      return CALL_RESTARTS;
    default:
      break;
    }
  }
  return CALL_GOES_ON;
}

/* --- many descriptors --- */

/* Makes the call without waiting, where the program's memory may be written. */
static long poll_now(const uint64_t *argument) {
  return raw_system_call(SYS_poll, argument[0], argument[1], 0);
}

static bool polls_any(struct thread *thread) { return poll_now(thread->system_call.argument) != 0; }

static long epoll_now(const uint64_t *argument) {
  return raw_system_call_of_5(SYS_epoll_wait, argument[0], argument[1], argument[2], 0, 0);
}

/* What the program's sets say, which the kernel changes. */
struct descriptor_sets {
  fd_set set[3];
};

static size_t set_bytes(const uint64_t *argument) {
  return (argument[0] + 63) / 64 * sizeof(uint64_t);
}

static long select_now(const uint64_t *argument, struct descriptor_sets *sets) {
  uintptr_t at[3];
  size_t read;
  for (int i = 0; i < 3; i++) {
    at[i] = argument[1 + i] == 0 ? 0 : (uintptr_t)&sets->set[i];
    if (at[i] != 0 && !platform_read((void *)(uintptr_t)argument[1 + i], set_bytes(argument),
                                     &sets->set[i], &read))
      return -EFAULT;
  }
  struct timeval none = {0};
  return raw_system_call_of_5(SYS_select, argument[0], at[0], at[1], at[2], (uintptr_t)&none);
}

static bool selects_any(struct thread *thread) {
  struct descriptor_sets sets;
  return select_now(thread->system_call.argument, &sets) != 0;
}

static long select_and_tell(const uint64_t *argument) {
  struct descriptor_sets sets;
  long result = select_now(argument, &sets);
  for (int i = 0; i < 3 && result >= 0; i++) {
    if (argument[1 + i] != 0 && !platform_write(argument[1 + i], &sets.set[i], set_bytes(argument)))
      result = -EFAULT;
  }
  return result;
}

/* A call of this kind: what to ask, how to make it, and where its limit is. */
struct poll_kind {
  baton_question *is_ready;
  long (*now)(const uint64_t *argument);
  int limit;        /* the argument */
  uint64_t unit_ns; /* of the limit's second half in memory; 0: it is a number of milliseconds */
  bool tells_remaining; /* there */
  bool has_mask;        /* of signals, while it waits */
  uint64_t mask;
};

/* Where there is one; false where the kernel would refuse it. */
static bool take_mask(uint64_t address, uint64_t bytes, struct poll_kind *kind) {
  kind->has_mask = address != 0;
  return !kind->has_mask || signal_mask_read(address, bytes, &kind->mask);
}

static bool poll_kind_of(const struct system_call *call, struct poll_kind *kind) {
  const uint64_t *argument = call->argument;
  uint64_t mask[2] = {0}; /* where it is, and its bytes */
  size_t read;
  switch (call->x86_64) {
  case SYS_poll:
    *kind = (struct poll_kind){polls_any, poll_now, 2, 0, false};
    return true;
  case SYS_ppoll:
    *kind = (struct poll_kind){polls_any, poll_now, 2, 1, true};
    return take_mask(argument[3], argument[4], kind);
  case SYS_epoll_wait:
    *kind = (struct poll_kind){can_read, epoll_now, 3, 0, false};
    return true;
  case SYS_epoll_pwait:
    *kind = (struct poll_kind){can_read, epoll_now, 3, 0, false};
    return take_mask(argument[4], argument[5], kind);
  case CALL_EPOLL_PWAIT2:
    *kind = (struct poll_kind){can_read, epoll_now, 3, 1, false};
    return take_mask(argument[4], argument[5], kind);
  case SYS_select:
    *kind = (struct poll_kind){selects_any, select_and_tell, 4, 1000, true};
    return argument[0] <= FD_SETSIZE;
  case SYS_pselect6:
    *kind = (struct poll_kind){selects_any, select_and_tell, 4, 1, true};
    if (argument[5] != 0 &&
        !platform_read((void *)(uintptr_t)argument[5], sizeof(mask), mask, &read))
      return false;
    return argument[0] <= FD_SETSIZE && take_mask(mask[0], mask[1], kind);
  default:
    return false;
  }
}

static bool poll_until(struct thread *thread, const struct poll_kind *kind, uint64_t limit,
                       uint64_t *until) {
  int64_t time[2];
  size_t read;
  *until = BATON_FOR_EVER;
  if (kind->unit_ns == 0) {
    if ((int)limit >= 0)
      *until = virtual_time_in(thread, (uint64_t)(int)limit * NS_PER_MS);
    return true;
  }
  if (limit == 0)
    return true;
  if (!platform_read((void *)(uintptr_t)limit, sizeof(time), time, &read) || time[0] < 0 ||
      time[1] < 0)
    return false;
  if (time[0] < UINT32_MAX)
    *until =
        virtual_time_in(thread, (uint64_t)time[0] * NS_PER_S + (uint64_t)time[1] * kind->unit_ns);
  return true;
}

static void tell_remaining(struct thread *thread, const struct poll_kind *kind, uint64_t to,
                           uint64_t until) {
  if (!kind->tells_remaining || to == 0 || until == BATON_FOR_EVER)
    return;
  uint64_t ns = virtual_time_left_ns(thread, until);
  int64_t time[2] = {(int64_t)(ns / NS_PER_S), (int64_t)(ns % NS_PER_S / kind->unit_ns)};
  platform_write(to, time, sizeof(time));
}

static enum baton_call poll_many(struct thread *thread, const struct system_call *call,
                                 const struct poll_kind *kind, bool is_alone, int64_t *result) {
  uint64_t limit = call->argument[kind->limit], until;
  if (!poll_until(thread, kind, limit, &until))
    return CALL_GOES_ON; /* the kernel says why not */
  if (is_alone && until == BATON_FOR_EVER)
    return CALL_BLOCKS;
  bool is_interrupted = kind->has_mask && platform_begin_signal_mask(kind->mask, false);
  enum baton_end end = BATON_WOKEN;
  if (!kind->is_ready(thread)) {
    if (is_interrupted)
      end = BATON_INTERRUPTED;
    else if (until > baton_clock(thread))
      end = baton_await(thread, kind->is_ready, until);
  }
  /* What it writes is asked for no more. */
  *result = end == BATON_INTERRUPTED ? -EINTR : kind->now(call->argument);
  if (kind->has_mask)
    platform_end_signal_mask(*result == -EINTR);
  tell_remaining(thread, kind, limit, until);
  return CALL_IS_MADE;
}

/* --- children --- */

static long look_for_child(idtype_t type, id_t id, uintptr_t options) {
  siginfo_t information = {0};
  long error = raw_system_call_of_5(SYS_waitid, type, id, (uintptr_t)&information,
                                    options | WNOHANG | WNOWAIT, 0);
  return error != 0 ? error : information.si_pid;
}

static bool has_child(struct thread *thread) {
  const uint64_t *argument = thread->system_call.argument;
  int32_t id = (int32_t)argument[0];
  uintptr_t options = (uintptr_t)argument[2] & ~(uintptr_t)WUNTRACED;
  if (thread->system_call.x86_64 == SYS_waitid)
    return look_for_child((idtype_t)argument[0], (id_t)argument[1], (uintptr_t)argument[3]) != 0;
  options |= WEXITED | ((argument[2] & WUNTRACED) != 0 ? WSTOPPED : 0);
  if (id > 0)
    return look_for_child(P_PID, (id_t)id, options) != 0;
  if (id == -1)
    return look_for_child(P_ALL, 0, options) != 0;
  return look_for_child(P_PGID, id == 0 ? 0 : (id_t)-id, options) != 0;
}

static enum baton_call wait_for_child(struct thread *thread, const struct system_call *call,
                                      bool is_alone) {
  uint64_t options = call->argument[call->x86_64 == SYS_waitid ? 3 : 2];
  if ((options & WNOHANG) != 0)
    return CALL_GOES_ON;
  if (is_alone)
    return CALL_BLOCKS;
  if ((options & __WNOTHREAD) != 0)
    return CALL_GOES_OUTSIDE;
  while (!has_child(thread)) {
    if (baton_await(thread, has_child, BATON_FOR_EVER) == BATON_INTERRUPTED)
      return CALL_RESTARTS;
  }
  return CALL_GOES_ON;
}

bool readiness_call(struct thread *thread, const struct system_call *call, bool is_alone,
                    enum baton_call *how, int64_t *result) {
  struct poll_kind kind;
  switch (call->x86_64) {
  case SYS_read:
  case SYS_readv:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_recvmmsg:
  case SYS_accept:
  case SYS_accept4:
    *how = transfer(thread, call, true, is_alone, result);
    return true;
  case SYS_write:
  case SYS_writev:
  case SYS_sendto:
  case SYS_sendmsg:
  case SYS_sendmmsg:
    *how = transfer(thread, call, false, is_alone, result);
    return true;
  case SYS_wait4:
  case SYS_waitid:
    *how = wait_for_child(thread, call, is_alone);
    return true;
  default:
    if (!poll_kind_of(call, &kind))
      return false;
    *how = poll_many(thread, call, &kind, is_alone, result);
    return true;
  }
}
