/* SPDX-License-Identifier: Apache-2.0 */
#include "baton_calls.h"

#include "baton.h"
#include "platform.h"
#include "raw_system_call.h"
#include "recording.h"
#include "thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#define NS_PER_S 1000000000ull
/* What a system call takes beside its instructions. */
#define CALL_PRICE 2000u
/* 1 January 2026: when every recording begins. */
#define REALTIME_START_S 1767225600ull
#define MONOTONIC_START_S 1000ull

static uint64_t arrivals;

/* --- virtual time --- */

static uint64_t ns_of(struct thread *thread) {
  return baton_clock(thread) / BATON_INSTRUCTIONS_PER_NS;
}

static uint64_t start_of(uint64_t clock) {
  switch (clock) {
  case CLOCK_REALTIME:
  case CLOCK_REALTIME_COARSE:
  case CLOCK_TAI:
    return REALTIME_START_S * NS_PER_S;
  case CLOCK_MONOTONIC:
  case CLOCK_MONOTONIC_RAW:
  case CLOCK_MONOTONIC_COARSE:
  case CLOCK_BOOTTIME:
    return MONOTONIC_START_S * NS_PER_S;
  default: /* of the process, or the thread */
    return 0;
  }
}

static bool write_to(uint64_t address, const void *bytes, size_t count) {
  return platform_write(address, bytes, count);
}

static int64_t tell_time(struct thread *thread, uint64_t clock, uint64_t to) {
  uint64_t ns = start_of(clock) + ns_of(thread);
  struct timespec time = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
  return write_to(to, &time, sizeof(time)) ? 0 : -EFAULT;
}

static int64_t tell_day(struct thread *thread, uint64_t to) {
  uint64_t ns = start_of(CLOCK_REALTIME) + ns_of(thread);
  struct timeval time = {.tv_sec = (time_t)(ns / NS_PER_S),
                         .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)};
  return to == 0 || write_to(to, &time, sizeof(time)) ? 0 : -EFAULT;
}

static bool read_time(uint64_t address, uint64_t *ns) {
  struct timespec time;
  size_t read;
  if (!platform_read((void *)(uintptr_t)address, sizeof(time), &time, &read))
    return false;
  *ns = (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
  return true;
}

/* The place of the thread's clock at a time that is relative, or of a clock of the program. */
static uint64_t place_of(struct thread *thread, uint64_t ns, bool is_absolute, uint64_t clock) {
  if (!is_absolute)
    return baton_clock(thread) + ns * BATON_INSTRUCTIONS_PER_NS;
  uint64_t start = start_of(clock);
  return ns > start ? (ns - start) * BATON_INSTRUCTIONS_PER_NS : 0;
}

static int64_t sleep_until(struct thread *thread, uint64_t until, uint64_t remains) {
  if (baton_wait(thread, until) != BATON_INTERRUPTED)
    return 0;
  uint64_t clock = baton_clock(thread);
  uint64_t ns = until > clock ? (until - clock) / BATON_INSTRUCTIONS_PER_NS : 0;
  struct timespec left = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
  if (remains != 0)
    write_to(remains, &left, sizeof(left));
  return -EINTR;
}

static int64_t sleep_for(struct thread *thread, uint64_t clock, bool is_absolute, uint64_t time,
                         uint64_t remains) {
  uint64_t ns;
  if (!read_time(time, &ns))
    return -EFAULT;
  return sleep_until(thread, place_of(thread, ns, is_absolute, clock), is_absolute ? 0 : remains);
}

/* --- futexes --- */

static bool read_word(uint64_t address, uint32_t *value) {
  size_t read;
  return platform_read((void *)(uintptr_t)address, sizeof(*value), value, &read);
}

static int64_t futex_wait(struct thread *thread, uint64_t word, uint32_t expected, uint32_t bitset,
                          uint64_t until) {
  struct baton_member *member = &thread->member;
  uint32_t value;
  if (!read_word(word, &value))
    return -EFAULT;
  if (value != expected)
    return -EAGAIN;
  member->word = word;
  member->bitset = bitset;
  member->arrival = ++arrivals;
  switch (baton_wait(thread, until)) {
  case BATON_TIMED_OUT:
    return -ETIMEDOUT;
  case BATON_INTERRUPTED:
    return -EINTR;
  default:
    return 0;
  }
}

/* Who has waited longest at the word. */
static struct baton_member *waiter_at(uint64_t word, uint32_t bitset) {
  struct baton_member *first = NULL;
  for (struct baton_member *member = baton_first(); member != NULL; member = member->next) {
    if (member->word == word && (member->bitset & bitset) != 0 &&
        (first == NULL || member->arrival < first->arrival))
      first = member;
  }
  return first;
}

static int64_t futex_wake(uint64_t word, uint32_t count, uint32_t bitset) {
  uint32_t woken = 0;
  struct baton_member *member;
  while (woken < count && (member = waiter_at(word, bitset)) != NULL) {
    baton_wake(member, BATON_WOKEN);
    woken++;
  }
  return woken;
}

static int64_t futex_requeue(const uint64_t *argument, bool compares) {
  uint32_t value, moved = 0;
  if (compares && !read_word(argument[0], &value))
    return -EFAULT;
  if (compares && value != (uint32_t)argument[5])
    return -EAGAIN;
  int64_t woken = futex_wake(argument[0], (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY);
  struct baton_member *member;
  while (argument[4] != argument[0] && moved < (uint32_t)argument[3] &&
         (member = waiter_at(argument[0], FUTEX_BITSET_MATCH_ANY)) != NULL) {
    member->word = argument[4];
    moved++;
  }
  return woken + moved;
}

static uint32_t operated(uint32_t operation, uint32_t old) {
  uint32_t argument = (uint32_t)((int32_t)(operation << 8) >> 20);
  if ((operation >> 28 & FUTEX_OP_OPARG_SHIFT) != 0)
    argument = 1u << (argument & 31);
  switch (operation >> 28 & 7) {
  case FUTEX_OP_SET:
    return argument;
  case FUTEX_OP_ADD:
    return old + argument;
  case FUTEX_OP_OR:
    return old | argument;
  case FUTEX_OP_ANDN:
    return old & ~argument;
  default:
    return old ^ argument;
  }
}

static bool compared(uint32_t operation, uint32_t old) {
  int32_t value = (int32_t)old, with = (int32_t)(operation << 20) >> 20;
  switch (operation >> 24 & 15) {
  case FUTEX_OP_CMP_EQ:
    return value == with;
  case FUTEX_OP_CMP_NE:
    return value != with;
  case FUTEX_OP_CMP_LT:
    return value < with;
  case FUTEX_OP_CMP_LE:
    return value <= with;
  case FUTEX_OP_CMP_GT:
    return value > with;
  default:
    return value >= with;
  }
}

static int64_t futex_wake_operation(const uint64_t *argument) {
  uint32_t old, operation = (uint32_t)argument[5];
  if (!read_word(argument[4], &old))
    return -EFAULT;
  uint32_t new = operated(operation, old);
  if (!write_to(argument[4], &new, sizeof(new)))
    return -EFAULT;
  int64_t woken = futex_wake(argument[0], (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY);
  if (compared(operation, old))
    woken += futex_wake(argument[4], (uint32_t)argument[3], FUTEX_BITSET_MATCH_ANY);
  return woken;
}

static uint32_t kernel_id(const struct thread *thread) {
  return (uint32_t)platform_kernel_thread_id(thread);
}

/* A mutex with priority inheritance: its word is its owner's id. */
static int64_t futex_lock(struct thread *thread, uint64_t word, uint64_t until, bool tries) {
  uint32_t value, own = kernel_id(thread);
  for (;;) {
    if (!read_word(word, &value))
      return -EFAULT;
    if ((value & FUTEX_TID_MASK) == 0) {
      value = own | (value & FUTEX_OWNER_DIED) |
              (waiter_at(word, FUTEX_BITSET_MATCH_ANY) != NULL ? FUTEX_WAITERS : 0);
      return write_to(word, &value, sizeof(value)) ? 0 : -EFAULT;
    }
    if ((value & FUTEX_TID_MASK) == own)
      return -EDEADLK;
    if (tries)
      return -EAGAIN;
    value |= FUTEX_WAITERS;
    if (!write_to(word, &value, sizeof(value)))
      return -EFAULT;
    int64_t result = futex_wait(thread, word, value, FUTEX_BITSET_MATCH_ANY, until);
    if (result != 0)
      return result;
    if (read_word(word, &value) && (value & FUTEX_TID_MASK) == own)
      return 0;
  }
}

static int64_t futex_unlock(struct thread *thread, uint64_t word) {
  uint32_t value;
  if (!read_word(word, &value))
    return -EFAULT;
  if ((value & FUTEX_TID_MASK) != kernel_id(thread))
    return -EPERM;
  struct baton_member *next = waiter_at(word, FUTEX_BITSET_MATCH_ANY);
  value = next == NULL ? 0 : kernel_id(next->thread);
  if (next != NULL)
    baton_wake(next, BATON_WOKEN);
  if (waiter_at(word, FUTEX_BITSET_MATCH_ANY) != NULL)
    value |= FUTEX_WAITERS;
  return write_to(word, &value, sizeof(value)) ? 0 : -EFAULT;
}

static bool waits_until(struct thread *thread, const uint64_t *argument, bool is_absolute,
                        uint64_t *until) {
  uint64_t ns;
  *until = BATON_FOR_EVER;
  if (argument[3] == 0)
    return true;
  if (!read_time(argument[3], &ns))
    return false;
  bool is_real =
      (argument[1] & FUTEX_CLOCK_REALTIME) != 0 || (argument[1] & FUTEX_CMD_MASK) == FUTEX_LOCK_PI;
  *until = place_of(thread, ns, is_absolute, is_real ? CLOCK_REALTIME : CLOCK_MONOTONIC);
  return true;
}

static int64_t futex(struct thread *thread, const uint64_t *argument) {
  uint64_t until = BATON_FOR_EVER;
  uint32_t command = argument[1] & FUTEX_CMD_MASK;
  bool is_timed = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ||
                  command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
  if (is_timed && !waits_until(thread, argument, command != FUTEX_WAIT, &until))
    return -EFAULT;
  switch (command) {
  case FUTEX_WAIT:
    return futex_wait(thread, argument[0], (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY, until);
  case FUTEX_WAIT_BITSET:
    return futex_wait(thread, argument[0], (uint32_t)argument[2], (uint32_t)argument[5], until);
  case FUTEX_WAKE:
    return futex_wake(argument[0], (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY);
  case FUTEX_WAKE_BITSET:
    return futex_wake(argument[0], (uint32_t)argument[2], (uint32_t)argument[5]);
  case FUTEX_REQUEUE:
    return futex_requeue(argument, false);
  case FUTEX_CMP_REQUEUE:
    return futex_requeue(argument, true);
  case FUTEX_WAKE_OP:
    return futex_wake_operation(argument);
  case FUTEX_LOCK_PI:
  case FUTEX_LOCK_PI2:
    return futex_lock(thread, argument[0], until, false);
  case FUTEX_TRYLOCK_PI:
    return futex_lock(thread, argument[0], until, true);
  case FUTEX_UNLOCK_PI:
    return futex_unlock(thread, argument[0]);
  default:
    return -ENOSYS;
  }
}

/* --- descriptors --- */

static bool is_ready(int descriptor, short events) {
  struct pollfd one = {.fd = descriptor, .events = events};
  return raw_system_call(SYS_poll, (uintptr_t)&one, 1, 0) != 0;
}

/* --- ends of threads --- */

static bool is_alone(void) { return baton_first() != NULL && baton_first()->next == NULL; }

static void clear_at_end(struct thread *thread) {
  struct baton_member *member = &thread->member;
  int32_t none = 0;
  if (!is_alone())
    raw_system_call(SYS_set_tid_address, (uintptr_t)baton_leaves(), 0, 0);
  if (member->cleared_at_end != 0 && write_to(member->cleared_at_end, &none, sizeof(none)))
    futex_wake(member->cleared_at_end, UINT32_MAX, FUTEX_BITSET_MATCH_ANY);
  member->cleared_at_end = 0;
}

/* Of the arguments of clone3, struct clone_args. */
#define CLONE_CHILD_AT 16

static void make_thread(const struct system_call *call) {
  uint64_t child = call->argument[3];
  size_t read;
  if (call->x86_64 == SYS_clone3)
    platform_read((void *)(uintptr_t)(call->argument[0] + CLONE_CHILD_AT), sizeof(child), &child,
                  &read);
  if ((call->flags & CLONE_THREAD) != 0)
    baton_makes_thread((call->flags & CLONE_CHILD_CLEARTID) != 0 ? child : 0);
}

static bool may_block_on(int descriptor, short events, struct thread *thread, int64_t *result) {
  /* Asked again at each turn. */
  while (!is_ready(descriptor, events)) {
    uint64_t clock = baton_clock(thread);
    if (baton_wait(thread, clock + LEAD_QUANTUM) == BATON_INTERRUPTED) {
      *result = -EINTR;
      return true;
    }
  }
  return false;
}

static bool is_nonblocking(int descriptor) {
  const int get_flags = 3, nonblocking = 04000;
  long flags = raw_system_call(SYS_fcntl, (uintptr_t)descriptor, get_flags, 0);
  return flags < 0 || (flags & nonblocking) != 0;
}

/* Whether it is a pipe, a socket or a terminal: what others make ready. */
static bool is_stream(int descriptor) {
  struct stat status;
  return raw_system_call(SYS_fstat, (uintptr_t)descriptor, (uintptr_t)&status, 0) == 0 &&
         !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISBLK(status.st_mode);
}

/* So much goes through at once where anything does. */
static bool is_whole(const struct system_call *call) {
  switch (call->x86_64) {
  case SYS_write:
  case SYS_sendto:
    return call->argument[2] <= PIPE_BUF;
  case SYS_writev:
  case SYS_sendmsg:
    return false;
  case SYS_recvfrom:
    return (call->argument[3] & MSG_WAITALL) == 0;
  case SYS_recvmsg:
    return (call->argument[2] & MSG_WAITALL) == 0;
  default:
    return true;
  }
}

static enum baton_call on_descriptor(struct thread *thread, const struct system_call *call,
                                     short events, int64_t *result) {
  int descriptor = (int)call->argument[0];
  if (is_alone() || !is_stream(descriptor) || is_nonblocking(descriptor))
    return CALL_GOES_ON;
  if (!is_whole(call))
    return CALL_GOES_OUTSIDE;
  return may_block_on(descriptor, events, thread, result) ? CALL_IS_MADE : CALL_GOES_ON;
}

enum baton_call baton_call(struct thread *thread, const struct system_call *call, int64_t *result) {
  const uint64_t *argument = call->argument;
  baton_charge(thread, CALL_PRICE);
  switch (call->x86_64) {
  case SYS_futex:
    baton_look(thread, LEAD_MEETING);
    *result = futex(thread, argument);
    return CALL_IS_MADE;
  case SYS_clock_gettime:
    *result = tell_time(thread, argument[0], argument[1]);
    return CALL_IS_MADE;
  case SYS_gettimeofday:
    *result = tell_day(thread, argument[0]);
    return CALL_IS_MADE;
  case SYS_time: {
    int64_t now = (int64_t)(REALTIME_START_S + ns_of(thread) / NS_PER_S);
    *result = argument[0] == 0 || write_to(argument[0], &now, sizeof(now)) ? now : -EFAULT;
    return CALL_IS_MADE;
  }
  case SYS_nanosleep:
    *result = sleep_for(thread, CLOCK_MONOTONIC, false, argument[0], argument[1]);
    return CALL_IS_MADE;
  case SYS_clock_nanosleep:
    *result = sleep_for(thread, argument[0], (argument[1] & TIMER_ABSTIME) != 0, argument[2],
                        argument[3]);
    return CALL_IS_MADE;
  case SYS_sched_yield:
    baton_look(thread, LEAD_NONE);
    *result = 0;
    return CALL_IS_MADE;
  case SYS_clone:
  case SYS_clone3:
    baton_look(thread, LEAD_MEETING);
    make_thread(call);
    return CALL_GOES_ON;
  case SYS_set_tid_address:
    thread->member.cleared_at_end = argument[0];
    return CALL_GOES_ON;
  case SYS_exit:
    clear_at_end(thread);
    return CALL_GOES_ON;
  case SYS_read:
  case SYS_readv:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_accept:
  case SYS_accept4:
    baton_look(thread, LEAD_MEETING);
    return on_descriptor(thread, call, POLLIN, result);
  case SYS_write:
  case SYS_writev:
  case SYS_sendto:
  case SYS_sendmsg:
    baton_look(thread, LEAD_MEETING);
    return on_descriptor(thread, call, POLLOUT, result);
  case SYS_poll:
  case SYS_ppoll:
  case SYS_select:
  case SYS_pselect6:
  case SYS_epoll_wait:
  case SYS_epoll_pwait:
  case SYS_wait4:
  case SYS_waitid:
  case SYS_pause:
  case SYS_rt_sigsuspend:
  case SYS_rt_sigtimedwait:
  case SYS_connect:
  case SYS_msgrcv:
  case SYS_msgsnd:
  case SYS_semop:
  case SYS_semtimedop:
  case SYS_flock:
  case SYS_mq_timedreceive:
  case SYS_mq_timedsend:
    return is_alone() ? CALL_GOES_ON : CALL_GOES_OUTSIDE;
  default:
    baton_look(thread, LEAD_MEETING);
    return CALL_GOES_ON;
  }
}
