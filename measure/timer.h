// SPDX-License-Identifier: Apache-2.0
//
// Time at the resolution of the processor's own counter, and core cycles where the kernel lets an
// ordinary user count them. The counter (TSC, CNTVCT) runs at one rate whatever the core's; its
// rate is measured against the system's clock over the whole run.
#ifndef TIMER_H
#define TIMER_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Nothing before it is still to be done, and nothing after it has begun.
static inline uint64_t timer_ticks(void) {
#if defined(__x86_64__)
  uint32_t low, high;
  __asm__ volatile("mfence\n\tlfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
  return (uint64_t)high << 32 | low;
#else
  uint64_t ticks;
  __asm__ volatile("dsb sy\n\tisb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks)::"memory");
  return ticks;
#endif
}

static inline uint64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct cycle_counter {
  int file;           // -1: none
  const char *reason; // why there is none
};

static inline const char *why_not_counted(int error) {
  if (error == EACCES || error == EPERM)
    return "kernel.perf_event_paranoid forbids it";
  if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP)
    return "the kernel knows no counter of this machine";
  return strerror(error);
}

// Cycles of the calling thread in user mode.
static inline struct cycle_counter cycle_counter_open(void) {
  struct perf_event_attr wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_HARDWARE;
  wanted.config = PERF_COUNT_HW_CPU_CYCLES;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  int file = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  return (struct cycle_counter){file, file < 0 ? why_not_counted(errno) : NULL};
}

// A system call: it lies outside of what is timed, and inside of what is counted.
static inline uint64_t cycle_counter_read(const struct cycle_counter *counter) {
  uint64_t cycles = 0;
  if (counter->file < 0 || read(counter->file, &cycles, sizeof cycles) != sizeof cycles)
    return 0;
  return cycles;
}

#endif
