/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper.h"

#include "arena.h"
#include "frame.h"
#include "killed_process.h"
#include "raw_system_call.h"
#include "recording.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define STACK_BYTES (256u * 1024)
/* What it does takes a moment; who holds a lock that it needs is dead. */
#define SAVING_SECONDS_MAX 20
/* Newer than the headers may be. */
#define CALL_PIDFD_OPEN 434
#define CALL_CLOSE_RANGE 436

/* So often is looked at most whether it has closed its copies of descriptors. */
#define LOOKS_MAX 200
#define LOOK_NS 10000000

/* A futex, in the memory that both have. */
static int32_t has_closed;

static uint64_t with_signals(uint64_t blocked) {
  uint64_t before = 0;
  raw_system_call_of_5(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&blocked, (uintptr_t)&before,
                       sizeof(blocked), 0);
  return before;
}

static void leave_behind(void) {
  uintptr_t record = (uintptr_t)frame_record();
  raw_system_call(SYS_setsid, 0, 0, 0);
  raw_system_call(SYS_prctl, PR_SET_NAME, (uintptr_t)"fencepost-keep", 0);
  if (record > 0)
    raw_system_call(CALL_CLOSE_RANGE, 0, record - 1, 0);
  raw_system_call(CALL_CLOSE_RANGE, record + 1, UINT_MAX, 0);
  __atomic_store_n(&has_closed, 1, __ATOMIC_RELEASE);
  raw_system_call(SYS_futex, (uintptr_t)&has_closed, FUTEX_WAKE, 1);
}

/* Until then a pipe that the program closes would not end. */
static void await_closed(void) {
  const struct timespec time = {.tv_nsec = LOOK_NS};
  for (int i = 0; i < LOOKS_MAX && __atomic_load_n(&has_closed, __ATOMIC_ACQUIRE) == 0; i++)
    raw_system_call_of_5(SYS_futex, (uintptr_t)&has_closed, FUTEX_WAIT, 0, (uintptr_t)&time, 0);
}

/* Kills itself if it cannot come to its end. */
static void limit_time(void) {
  const uint64_t alarm_alone = ~(1ull << (SIGALRM - 1));
  struct {
    void *handler;
    unsigned long flags, restorer, mask;
  } by_default = {SIG_DFL};
  raw_system_call_of_5(SYS_rt_sigaction, SIGALRM, (uintptr_t)&by_default, 0, sizeof(uint64_t), 0);
  with_signals(alarm_alone);
  raw_system_call(SYS_alarm, SAVING_SECONDS_MAX, 0, 0);
}

static void keep(void) {
  struct process_control *control = recording.control;
  leave_behind();
  struct pollfd process = {.events = POLLIN};
  process.fd = (int)raw_system_call(CALL_PIDFD_OPEN, (uintptr_t)recording.process, 0, 0);
  if (process.fd >= 0) {
    while (raw_system_call(SYS_poll, (uintptr_t)&process, 1, (uintptr_t)-1) <= 0)
      ;
    limit_time();
    killed_process_save();
  }
  __atomic_store_n(&control->keeper, 0, __ATOMIC_RELEASE);
  raw_system_call(SYS_exit_group, 0, 0, 0);
}

static long clone_onto(char *stack_end, uint64_t flags) {
  register uintptr_t r10 __asm__("r10") = 0;
  register uintptr_t r8 __asm__("r8") = 0;
  register void (*entry)(void) __asm__("r12") = keep;
  long result;
  __asm__ volatile("syscall\n"
                   "test %%rax, %%rax\n"
                   "jnz 1f\n"
                   "xor %%ebp, %%ebp\n"
                   "call *%%r12\n"
                   "1:\n"
                   : "=a"(result)
                   : "0"(SYS_clone), "D"(flags), "S"(stack_end), "d"(0), "r"(r10), "r"(r8),
                     "r"(entry)
                   : "rcx", "r11", "memory");
  return result;
}

static void kill_keeper(struct process_control *control) {
  int32_t keeper = __atomic_exchange_n(&control->keeper, 0, __ATOMIC_ACQ_REL);
  if (keeper <= 0)
    return;
  raw_system_call(SYS_kill, (uintptr_t)keeper, SIGKILL, 0);
  raw_system_call_of_5(SYS_wait4, (uintptr_t)keeper, 0, __WALL, 0, 0);
}

void keeper_begin(void) {
  kill_keeper(recording.control);
  char *stack = pages_allocate(STACK_BYTES);
  uint64_t before = with_signals(UINT64_MAX);
  __atomic_store_n(&has_closed, 0, __ATOMIC_RELEASE);
  /* A child that sends no signal when it ends: the program's waits do not see it. */
  long keeper = clone_onto(stack + STACK_BYTES, CLONE_VM);
  with_signals(before);
  if (keeper > 0) {
    __atomic_store_n(&recording.control->keeper, (int32_t)keeper, __ATOMIC_RELEASE);
    await_closed();
  } else {
    pages_free(stack, STACK_BYTES);
  }
}

void keeper_end(void) { kill_keeper(recording.control); }
