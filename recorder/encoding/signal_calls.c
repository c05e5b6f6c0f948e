/* SPDX-License-Identifier: Apache-2.0 */
#include "signal_calls.h"

#include "baton.h"
#include "platform.h"
#include "thread.h"
#include "virtual_time.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#define KERNEL_SIGINFO_BYTES 128

static uint64_t bit_of(int number) { return (uint64_t)1 << (number - 1); }

bool signal_mask_read(uint64_t address, uint64_t bytes, uint64_t *mask) {
  size_t read;
  return bytes == sizeof(*mask) &&
         platform_read((const void *)(uintptr_t)address, sizeof(*mask), mask, &read);
}

static enum baton_call pause_until_signal(struct thread *thread, bool is_alone, int64_t *result) {
  if (is_alone)
    return CALL_BLOCKS;
  baton_await_signals(thread, 0, BATON_FOR_EVER);
  *result = -EINTR;
  return CALL_IS_MADE;
}

static enum baton_call suspend(struct thread *thread, bool is_alone, int64_t *result) {
  const uint64_t *argument = thread->system_call.argument;
  uint64_t mask;
  if (!signal_mask_read(argument[0], argument[1], &mask))
    return CALL_GOES_ON; /* The kernel says why not. */
  if (is_alone)
    return CALL_BLOCKS;
  if (!platform_begin_signal_mask(mask, false))
    baton_await_signals(thread, 0, BATON_FOR_EVER);
  platform_end_signal_mask(true);
  *result = -EINTR;
  return CALL_IS_MADE;
}

/* 0: there is none. */
static int64_t take(uint64_t set, uint64_t to) {
  uint8_t information[KERNEL_SIGINFO_BYTES];
  int number = platform_take_blocked_signal(set, information);
  return number == 0 || to == 0 || platform_write(to, information, sizeof(information)) ? number
                                                                                        : -EFAULT;
}

/* Another thread may take the signal that has ended a wait. */
static int64_t take_until(struct thread *thread, uint64_t set, uint64_t to, uint64_t until) {
  for (;;) {
    int64_t taken = take(set, to);
    if (taken != 0)
      return taken;
    if (until <= baton_clock(thread))
      return -EAGAIN;
    enum baton_end end = baton_await_signals(thread, set, until);
    if (end == BATON_INTERRUPTED) {
      taken = take(set, to);
      return taken != 0 ? taken : -EINTR;
    }
  }
}

/* What it waits for does not go to a handler meanwhile. */
static enum baton_call wait_for_signal(struct thread *thread, int64_t *result) {
  const uint64_t *argument = thread->system_call.argument;
  uint64_t set, until;
  if (!signal_mask_read(argument[0], argument[3], &set) ||
      !virtual_time_limit(thread, argument[2], &until))
    return CALL_GOES_ON; /* The kernel says why not. */
  set &= ~(bit_of(SIGKILL) | bit_of(SIGSTOP));
  bool is_interrupted = platform_begin_signal_mask(set, true);
  *result = take_until(thread, set, argument[1], is_interrupted ? 0 : until);
  if (*result == -EAGAIN && is_interrupted)
    *result = -EINTR;
  platform_end_signal_mask(false);
  return CALL_IS_MADE;
}

bool signal_call(struct thread *thread, const struct system_call *call, bool is_alone,
                 enum baton_call *how, int64_t *result) {
  switch (call->x86_64) {
  case SYS_pause:
    *how = pause_until_signal(thread, is_alone, result);
    return true;
  case SYS_rt_sigsuspend:
    *how = suspend(thread, is_alone, result);
    return true;
  case SYS_rt_sigtimedwait:
    *how = wait_for_signal(thread, result);
    return true;
  default:
    return false;
  }
}
