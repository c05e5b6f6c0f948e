/* SPDX-License-Identifier: Apache-2.0 */
#include "signal_waits.h"

#include "dr_api.h"

#include "baton.h"
#include "raw_system_call.h"
#include "thread.h"
#include "virtual_time.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

/* So late a signal may come that another thread was given. */
#define TURN_NS 5000000
#define NANOSECONDS_PER_SECOND 1000000000ll
#define FOR_EVER INT64_MAX
#define KERNEL_SIGINFO_BYTES 128

enum { SET, SIGINFO, LIMIT, SET_BYTES }; /* the call's arguments */

/* The engine's (engine/patches/waits_for_blocked_signals.patch). */
extern int dr_take_blocked_signal(void *drcontext, uint64_t set, void *siginfo);

static uint64_t bit_of(int number) { return (uint64_t)1 << (number - 1); }

static int64_t now_ns(struct thread *thread) {
  struct timespec now;
  if (baton_has(thread))
    return (int64_t)virtual_time_now_ns(thread);
  raw_system_call(SYS_clock_gettime, CLOCK_MONOTONIC, (uintptr_t)&now, 0);
  return now.tv_sec * NANOSECONDS_PER_SECOND + now.tv_nsec;
}

/* Where the call ends at the latest; false if the kernel refuses its limit. */
static bool end_of(struct thread *thread, const struct timespec *limit, int64_t *end_ns) {
  struct timespec read;
  *end_ns = FOR_EVER;
  if (limit == NULL)
    return true;
  if (!dr_safe_read(limit, sizeof(read), &read, NULL) || read.tv_sec < 0 || read.tv_nsec < 0 ||
      read.tv_nsec >= NANOSECONDS_PER_SECOND)
    return false;
  int64_t now = now_ns(thread);
  if (read.tv_sec < (FOR_EVER - now) / NANOSECONDS_PER_SECOND - 1)
    *end_ns = now + read.tv_sec * NANOSECONDS_PER_SECOND + read.tv_nsec;
  return true;
}

static void make_turn(void *drcontext, struct signal_wait *wait) {
  /* The engine stops threads by these; the program's own are kept as others are. */
  wait->kernel_set = wait->set & ~(bit_of(SIGILL) | bit_of(SIGSTKFLT));
  dr_syscall_set_param(drcontext, SET, (reg_t)&wait->kernel_set);
  dr_syscall_set_param(drcontext, SIGINFO, wait->siginfo);
  dr_syscall_set_param(drcontext, LIMIT, (reg_t)&wait->turn);
  dr_syscall_set_param(drcontext, SET_BYTES, sizeof(wait->kernel_set));
}

bool signal_wait_before(void *drcontext, struct thread *thread, int number) {
  struct signal_wait *wait = &thread->signal_wait;
  if (number != SYS_rt_sigtimedwait)
    return false;
  reg_t set = dr_syscall_get_param(drcontext, SET);
  /* A handler may have left a wait that had not begun by a jump: then this is another one. */
  if (wait->is_made && set == (reg_t)&wait->kernel_set)
    return true;
  wait->is_made = dr_syscall_get_param(drcontext, SET_BYTES) == sizeof(wait->set) &&
                  dr_safe_read((void *)set, sizeof(wait->set), &wait->set, NULL);
  reg_t limit = dr_syscall_get_param(drcontext, LIMIT);
  wait->is_made = wait->is_made && end_of(thread, (const struct timespec *)limit, &wait->end_ns);
  if (!wait->is_made)
    return false;
  wait->program_set = set;
  wait->program_limit = limit;
  wait->siginfo = dr_syscall_get_param(drcontext, SIGINFO);
  wait->turn = (struct timespec){0}; /* What is pending comes at once. */
  make_turn(drcontext, wait);
  return false;
}

/* The program's registers, as the kernel would have left them. */
static void end_call(void *drcontext, struct signal_wait *wait, int64_t result) {
  dr_mcontext_t registers = {.size = sizeof(registers), .flags = DR_MC_INTEGER};
  wait->is_made = false;
  dr_get_mcontext(drcontext, &registers);
  registers.xdi = wait->program_set;
  registers.xdx = wait->program_limit;
  registers.xax = (reg_t)result;
  dr_set_mcontext(drcontext, &registers);
}

static int64_t take_kept(void *drcontext, const struct signal_wait *wait) {
  uint8_t siginfo[KERNEL_SIGINFO_BYTES];
  int number = dr_take_blocked_signal(drcontext, wait->set, siginfo);
  if (number > 0 && wait->siginfo != 0 &&
      !dr_safe_write((void *)wait->siginfo, sizeof(siginfo), siginfo, NULL))
    return -EFAULT;
  return number;
}

bool signal_wait_after(void *drcontext, struct thread *thread, int number, int64_t *result) {
  struct signal_wait *wait = &thread->signal_wait;
  if (number != SYS_rt_sigtimedwait || !wait->is_made)
    return false;
  if (*result == -EAGAIN) {
    int64_t taken = take_kept(drcontext, wait);
    int64_t left_ns = wait->end_ns == FOR_EVER ? TURN_NS : wait->end_ns - now_ns(thread);
    if (taken == 0 && left_ns > 0) {
      wait->turn.tv_nsec = left_ns < TURN_NS ? left_ns : TURN_NS;
      dr_syscall_set_sysnum(drcontext, number);
      make_turn(drcontext, wait);
      dr_syscall_invoke_another(drcontext);
      return true;
    }
    if (taken != 0)
      *result = taken;
  }
  end_call(drcontext, wait, *result);
  return false;
}
