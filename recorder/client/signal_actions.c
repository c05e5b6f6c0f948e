/* SPDX-License-Identifier: Apache-2.0 */
#include "signal_actions.h"

#include "dr_api.h"

#include "raw_system_call.h"
#include "recording.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>

#define SIGNALS 64
#define SET_BYTES sizeof(uint64_t)

/* As the kernel has it. */
struct action {
  uintptr_t handler;
  uint64_t flags;
  uintptr_t restorer;
  uint64_t mask;
};

/* Of a process. A child of vfork has its own, in its parent's memory. */
struct actions {
  int32_t process;
  uint64_t ignored;   /* a bit for each signal */
  bool keeps_no_ends; /* children vanish when they end */
};

static struct actions own, of_vfork;
/* The engine's, of signals that are ignored while an image is left. */
static struct action engines[SIGNALS + 1];
static uint64_t left_out;

static uint64_t bit_of(int number) { return (uint64_t)1 << (number - 1); }

/* Faults are the engine's, and it stops threads by these. */
static bool is_engines(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
         number == SIGTRAP || number == SIGSTKFLT;
}

static long act(int number, const struct action *action, struct action *before) {
  return raw_system_call_of_5(SYS_rt_sigaction, (uintptr_t)number, (uintptr_t)action,
                              (uintptr_t)before, SET_BYTES, 0);
}

static struct actions *current(void) {
  int32_t process = process_id_of_caller();
  if (own.process == process)
    return &own;
  if (of_vfork.process != process) {
    of_vfork = own;
    of_vfork.process = process;
  }
  return &of_vfork;
}

static void set(struct actions *actions, int number, const struct action *action) {
  bool is_ignored = action->handler == (uintptr_t)SIG_IGN;
  actions->ignored =
      (actions->ignored & ~bit_of(number)) | (is_ignored ? bit_of(number) : (uint64_t)0);
  if (number == SIGCHLD)
    actions->keeps_no_ends = is_ignored || (action->flags & SA_NOCLDWAIT) != 0;
  if (number == SIGCHLD && actions == &own)
    recording.control->keeps_no_ends = actions->keeps_no_ends;
}

void signal_actions_init(void) {
  struct action action;
  own.process = process_id_of_caller();
  for (int number = 1; number <= SIGNALS; number++) {
    if (act(number, NULL, &action) == 0)
      set(&own, number, &action);
  }
}

void signal_actions_continue_in_child(void) {
  own.process = process_id_of_caller();
  recording.control->keeps_no_ends = own.keeps_no_ends;
}

/* Whether the kernel keeps children that have ended. */
static void tell_of_children(const struct actions *actions) {
  struct action action;
  if (act(SIGCHLD, NULL, &action) != 0)
    return;
  uint64_t flags =
      (action.flags & ~(uint64_t)SA_NOCLDWAIT) | (actions->keeps_no_ends ? SA_NOCLDWAIT : 0);
  if (flags == action.flags)
    return;
  action.flags = flags;
  act(SIGCHLD, &action, NULL);
}

static void leave_to_next_image(const struct actions *actions) {
  const struct action ignore = {.handler = (uintptr_t)SIG_IGN};
  left_out = 0;
  for (int number = 1; number <= SIGNALS; number++) {
    if ((actions->ignored & bit_of(number)) != 0 && !is_engines(number) &&
        act(number, &ignore, &engines[number]) == 0)
      left_out |= bit_of(number);
  }
}

static void stay(void) {
  for (int number = 1; number <= SIGNALS; number++) {
    if ((left_out & bit_of(number)) != 0)
      act(number, &engines[number], NULL);
  }
  left_out = 0;
}

static void note(void *drcontext) {
  int number = (int)dr_syscall_get_param(drcontext, 0);
  struct action action;
  if (number >= 1 && number <= SIGNALS &&
      dr_safe_read((const void *)dr_syscall_get_param(drcontext, 1), sizeof(action), &action, NULL))
    set(current(), number, &action);
}

void signal_actions_before_call(void *drcontext, int number) {
  switch (number) {
  case SYS_rt_sigaction:
    note(drcontext);
    if ((int)dr_syscall_get_param(drcontext, 0) == SIGCHLD)
      tell_of_children(current());
    break;
  case SYS_fork:
  case SYS_vfork:
  case SYS_clone:
  case SYS_clone3:
  case SYS_wait4:
  case SYS_waitid:
    tell_of_children(current());
    break;
  case SYS_execve:
  case SYS_execveat:
    leave_to_next_image(current());
    break;
  default:
    break;
  }
}

void signal_actions_after_call(int number, int64_t result) {
  if ((number == SYS_execve || number == SYS_execveat) && result != 0)
    stay();
}
