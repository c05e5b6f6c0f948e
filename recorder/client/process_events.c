/* SPDX-License-Identifier: Apache-2.0 */
#include "process_events.h"

#include "dr_api.h"

#include "baton.h"
#include "block_plan.h"
#include "descriptor_limit.h"
#include "keeper.h"
#include "process_image.h"
#include "raw_system_call.h"
#include "recording.h"
#include "signal_actions.h"
#include "threads.h"
#include "unrecorded_children.h"

#include <sys/syscall.h>

static bool is_unrecorded_child;

void process_events_before_childs_call(int number) {
  void *drcontext = dr_get_current_drcontext();
  /* A vfork's child still shares the parent's memory, and with it the engine's state: there the
   * engine must see the exec. */
  if (!is_unrecorded_child || number != SYS_execve)
    return;
  unrecorded_child_executes(process_id_of_caller(),
                            (const char *)(ptr_uint_t)dr_syscall_get_param(drcontext, 0));
  descriptor_limit_apply();
  /* Only returns when it fails, and then so will the program's own call. */
  raw_system_call(SYS_execve, dr_syscall_get_param(drcontext, 0),
                  dr_syscall_get_param(drcontext, 1), dr_syscall_get_param(drcontext, 2));
}

static void on_fork(void *drcontext) {
  block_plans_after_fork();
  if (process_image_forks(thread_of(drcontext))) {
    signal_actions_continue_in_child();
    descriptor_limit_continue_in_child();
    keeper_begin();
    baton_await_turn_in_child(thread_of(drcontext));
  } else {
    is_unrecorded_child = true;
  }
}

void process_events_init(void) { dr_register_fork_init_event(on_fork); }

void process_events_exit(void) { dr_unregister_fork_init_event(on_fork); }
