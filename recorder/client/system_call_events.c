/* SPDX-License-Identifier: Apache-2.0 */
#include "system_call_events.h"

#include "dr_api.h"

#include "drmgr.h"

#include "baton.h"
#include "baton_calls.h"
#include "process_events.h"
#include "signal_actions.h"
#include "signal_waits.h"
#include "signals.h"
#include "supplies.h"
#include "system_calls.h"
#include "threads.h"
#include "whole_transfers.h"
#include "withheld_calls.h"

#include <errno.h>
#include <sys/syscall.h>

static bool on_filter(void *drcontext, int number) { return true; }

/* While the kernel makes a call that may block. */
static void let_others_run(struct thread *thread) {
  if (baton_has(thread))
    baton_step_outside(thread);
}

/* The engine tells of no end of these. */
static bool never_returns(int number) {
  return number == SYS_exit || number == SYS_exit_group || number == SYS_rt_sigreturn;
}

/* The engine's (engine/patches/without_restart.patch). */
extern void dr_syscall_restart(void *drcontext);

/* Whether the kernel is to make it. */
static bool makes_call(void *drcontext, struct thread *thread, struct system_call *call) {
  int64_t result = -EINTR;
  enum baton_call how = baton_call(thread, call, &result);
  switch (how) {
  case CALL_RESTARTS:
    dr_syscall_set_result(drcontext, (reg_t)result);
    dr_syscall_restart(drcontext);
    return false;
  case CALL_IS_MADE:
    dr_syscall_set_result(drcontext, (reg_t)result);
    signals_after_call(call->number, result);
    if (thread_is_followed(thread))
      system_call_ends(thread, call, result);
    return false;
  case CALL_GOES_OUTSIDE:
    baton_step_outside(thread);
    return true;
  default:
    if (thread_is_followed(thread))
      supplies_before(thread, call);
    if (!never_returns(call->number))
      baton_enter_kernel(thread, how == CALL_BLOCKS);
    return true;
  }
}

static bool has_timed_out(int number, int64_t result) {
  switch (number) {
  case SYS_ppoll:
  case SYS_pselect6:
  case SYS_epoll_pwait:
  case SYS_epoll_pwait2:
    return result == 0;
  default:
    return result == -EAGAIN || result == -ETIMEDOUT;
  }
}

static bool on_before(void *drcontext, int number) {
  struct thread *thread = thread_of(drcontext);
  if (baton_has(thread))
    baton_come_back(thread, false, NULL);
  if ((!baton_has(thread) && signal_wait_before(drcontext, thread, number)) ||
      whole_transfer_before(drcontext, thread, number)) {
    let_others_run(thread);
    return true;
  }
  if (withheld_call(drcontext, number))
    return false;
  signal_actions_before_call(drcontext, number);
  if (!thread->is_recorded)
    process_events_before_childs_call(number);
  if (!thread_is_followed(thread) && !baton_has(thread))
    return true;
  struct system_call *call = &thread->system_call;
  call->number = number;
  for (int i = 0; i < SYSTEM_CALL_ARGUMENTS; i++)
    call->argument[i] = dr_syscall_get_param(drcontext, i);
  if (thread_is_followed(thread))
    system_call_begins(thread, call);
  else
    system_call_identify(call);
  return !baton_has(thread) || makes_call(drcontext, thread, call);
}

static void on_after(void *drcontext, int number) {
  struct thread *thread = thread_of(drcontext);
  int64_t result = (int64_t)dr_syscall_get_result(drcontext);
  if (baton_has(thread))
    baton_come_back(thread, has_timed_out(number, result), NULL);
  if (signal_wait_after(drcontext, thread, number, &result) ||
      whole_transfer_after(drcontext, thread, number, &result)) {
    let_others_run(thread); /* It is made again. */
    return;
  }
  signals_after_call(number, result);
  signal_actions_after_call(number, result);
  if (thread->system_call.number != number)
    return;
  if (thread_is_followed(thread))
    system_call_ends(thread, &thread->system_call, result);
  if (baton_has(thread))
    baton_call_ends(thread, &thread->system_call, result);
}

void system_call_events_init(void) {
  dr_register_filter_syscall_event(on_filter);
  drmgr_register_pre_syscall_event(on_before);
  drmgr_register_post_syscall_event(on_after);
}

void system_call_events_exit(void) {
  dr_unregister_filter_syscall_event(on_filter);
  drmgr_unregister_pre_syscall_event(on_before);
  drmgr_unregister_post_syscall_event(on_after);
}
