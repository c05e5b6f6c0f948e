/* SPDX-License-Identifier: Apache-2.0 */
#include "virtual_time.h"

#include "baton.h"
#include "platform.h"
#include "raw_system_call.h"
#include "recording.h"
#include "thread.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#define NS_PER_S 1000000000ull
/* 1 January 2026: when every recording begins. */
#define REALTIME_START_S 1767225600ull
#define MONOTONIC_START_S 1000ull
#define TICKS_PER_S 100
/* Of the instruction. */
#define TIME_STAMP_PRICE 30u

static uint64_t ns_of(struct thread *thread) {
  return baton_clock(thread) / BATON_INSTRUCTIONS_PER_NS;
}

/* A clock of another process or thread: its id, negated, before 3 bits of which one says that it is
 * a thread's. */
static uint64_t work_of(struct thread *thread, int clock) {
  const int is_of_thread = 4;
  uint64_t kernel_id = 0;
  if (clock == CLOCK_THREAD_CPUTIME_ID)
    kernel_id = platform_kernel_thread_id(thread);
  else if (clock < 0 && (clock & is_of_thread) != 0)
    kernel_id = clock >> 3 == -1 ? platform_kernel_thread_id(thread) : (uint64_t)~(clock >> 3);
  baton_clock(thread);
  return baton_worked(kernel_id) / BATON_INSTRUCTIONS_PER_NS;
}

static uint64_t time_of(struct thread *thread, int clock) {
  switch (clock) {
  case CLOCK_REALTIME:
  case CLOCK_REALTIME_COARSE:
  case CLOCK_REALTIME_ALARM:
  case CLOCK_TAI:
    return REALTIME_START_S * NS_PER_S + ns_of(thread);
  case CLOCK_MONOTONIC:
  case CLOCK_MONOTONIC_RAW:
  case CLOCK_MONOTONIC_COARSE:
  case CLOCK_BOOTTIME:
  case CLOCK_BOOTTIME_ALARM:
    return MONOTONIC_START_S * NS_PER_S + ns_of(thread);
  default:
    return work_of(thread, clock);
  }
}

static int64_t tell_time(struct thread *thread, int clock, uint64_t to) {
  if (clock > CLOCK_TAI)
    return -EINVAL;
  uint64_t ns = time_of(thread, clock);
  struct timespec time = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
  return platform_write(to, &time, sizeof(time)) ? 0 : -EFAULT;
}

static int64_t tell_day(struct thread *thread, uint64_t to) {
  uint64_t ns = time_of(thread, CLOCK_REALTIME);
  struct timeval time = {.tv_sec = (time_t)(ns / NS_PER_S),
                         .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)};
  return to == 0 || platform_write(to, &time, sizeof(time)) ? 0 : -EFAULT;
}

static uint64_t real_ns_of(int clock) {
  struct timespec time = {0};
  raw_system_call(SYS_clock_gettime, (uintptr_t)clock, (uintptr_t)&time, 0);
  return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

bool virtual_time_read(uint64_t address, uint64_t *ns) {
  struct timespec time;
  size_t read;
  if (!platform_read((void *)(uintptr_t)address, sizeof(time), &time, &read))
    return false;
  *ns = (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
  return true;
}

uint64_t virtual_time_in(struct thread *thread, uint64_t ns) {
  uint64_t now = baton_clock(thread);
  return ns < (BATON_FOR_EVER - now) / BATON_INSTRUCTIONS_PER_NS - 1
             ? now + ns * BATON_INSTRUCTIONS_PER_NS
             : BATON_FOR_EVER - 1;
}

uint64_t virtual_time_at(struct thread *thread, uint64_t ns, int clock) {
  thread_drain(thread);
  uint64_t now = recording.area->real_time ? real_ns_of(clock) : time_of(thread, clock);
  return ns > now ? virtual_time_in(thread, ns - now) : baton_clock(thread);
}

uint64_t virtual_time_now_ns(struct thread *thread) {
  return recording.area->real_time ? real_ns_of(CLOCK_MONOTONIC) : time_of(thread, CLOCK_MONOTONIC);
}

uint64_t virtual_time_left_ns(struct thread *thread, uint64_t until) {
  uint64_t now = baton_clock(thread);
  return until > now ? (until - now) / BATON_INSTRUCTIONS_PER_NS : 0;
}

uint64_t virtual_time_stamp(struct thread *thread) {
  baton_charge(thread, TIME_STAMP_PRICE);
  return baton_clock(thread);
}

static int64_t sleep_until(struct thread *thread, uint64_t until, uint64_t remains) {
  if (baton_wait(thread, until) != BATON_INTERRUPTED)
    return 0;
  uint64_t ns = virtual_time_left_ns(thread, until);
  struct timespec left = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
  if (remains != 0)
    platform_write(remains, &left, sizeof(left));
  return -EINTR;
}

/* Whether the kernel would take it. */
static bool read_sleep(uint64_t address, uint64_t *ns, int64_t *error) {
  struct timespec time;
  size_t read;
  *error = -EFAULT;
  if (!platform_read((void *)(uintptr_t)address, sizeof(time), &time, &read))
    return false;
  *error = -EINVAL;
  if (time.tv_sec < 0 || time.tv_nsec < 0 || time.tv_nsec >= (long)NS_PER_S)
    return false;
  *ns = (uint64_t)time.tv_sec > UINT32_MAX
            ? UINT32_MAX * NS_PER_S
            : (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
  return true;
}

bool virtual_time_is_valid(uint64_t address) {
  uint64_t ns;
  int64_t error;
  return read_sleep(address, &ns, &error);
}

bool virtual_time_limit(struct thread *thread, uint64_t address, uint64_t *until) {
  uint64_t ns;
  int64_t error;
  *until = BATON_FOR_EVER;
  if (address == 0)
    return true;
  if (!read_sleep(address, &ns, &error))
    return false;
  *until = virtual_time_in(thread, ns);
  return true;
}

static int64_t sleep_for(struct thread *thread, uint64_t clock, bool is_absolute, uint64_t time,
                         uint64_t remains) {
  uint64_t ns;
  int64_t error;
  if (!read_sleep(time, &ns, &error))
    return error;
  if (is_absolute)
    return sleep_until(thread, virtual_time_at(thread, ns, (int)clock), 0);
  return sleep_until(thread, virtual_time_in(thread, ns), remains);
}

static int64_t tell_usage(struct thread *thread, int who, uint64_t to) {
  uint64_t ns = who == RUSAGE_CHILDREN
                    ? 0
                    : work_of(thread, who == RUSAGE_THREAD ? CLOCK_THREAD_CPUTIME_ID
                                                           : CLOCK_PROCESS_CPUTIME_ID);
  struct rusage usage = {.ru_utime = {.tv_sec = (time_t)(ns / NS_PER_S),
                                      .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)}};
  return platform_write(to, &usage, sizeof(usage)) ? 0 : -EFAULT;
}

static int64_t tell_times(struct thread *thread, uint64_t to) {
  const uint64_t tick_ns = NS_PER_S / TICKS_PER_S;
  struct tms times = {.tms_utime = (clock_t)(work_of(thread, CLOCK_PROCESS_CPUTIME_ID) / tick_ns)};
  if (to != 0 && !platform_write(to, &times, sizeof(times)))
    return -EFAULT;
  return (int64_t)MONOTONIC_START_S * TICKS_PER_S + (int64_t)(ns_of(thread) / tick_ns);
}

static int64_t tell_seconds(struct thread *thread, uint64_t to) {
  int64_t now = (int64_t)(REALTIME_START_S + ns_of(thread) / NS_PER_S);
  return to == 0 || platform_write(to, &now, sizeof(now)) ? now : -EFAULT;
}

static bool is_of_time(int call) {
  switch (call) {
  case SYS_clock_gettime:
  case SYS_gettimeofday:
  case SYS_time:
  case SYS_times:
  case SYS_getrusage:
  case SYS_nanosleep:
  case SYS_clock_nanosleep:
    return true;
  default:
    return false;
  }
}

static bool tell(struct thread *thread, const struct system_call *call, int64_t *result) {
  const uint64_t *argument = call->argument;
  switch (call->x86_64) {
  case SYS_clock_gettime:
    *result = tell_time(thread, (int)argument[0], argument[1]);
    return true;
  case SYS_gettimeofday:
    *result = tell_day(thread, argument[0]);
    return true;
  case SYS_time:
    *result = tell_seconds(thread, argument[0]);
    return true;
  case SYS_times:
    *result = tell_times(thread, argument[0]);
    return true;
  case SYS_getrusage:
    *result = tell_usage(thread, (int)argument[0], argument[1]);
    return true;
  default:
    return false;
  }
}

bool virtual_time_call(struct thread *thread, const struct system_call *call, int64_t *result) {
  const uint64_t *argument = call->argument;
  if (!is_of_time(call->x86_64))
    return false;
  thread_drain(thread); /* and counts what it did */
  switch (call->x86_64) {
  case SYS_nanosleep:
    *result = sleep_for(thread, CLOCK_MONOTONIC, false, argument[0], argument[1]);
    return true;
  case SYS_clock_nanosleep:
    *result = sleep_for(thread, argument[0], (argument[1] & TIMER_ABSTIME) != 0, argument[2],
                        argument[3]);
    return true;
  default:
    return !recording.area->real_time && tell(thread, call, result);
  }
}
