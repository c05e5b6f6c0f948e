/* SPDX-License-Identifier: Apache-2.0 */
#include "process_image.h"

#include "arena.h"
#include "block_plan.h"
#include "call_path.h"
#include "code_table.h"
#include "environment.h"
#include "frame.h"
#include "mapped_files.h"
#include "raw_system_call.h"
#include "recording.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "thread_identity.h"
#include "unrecorded_children.h"
#include "wake_pairing.h"

#include <sys/syscall.h>

static bool is_forked_child;

static void flush_other_threads(void) {
  void **contexts;
  uint count, unsuspended;
  if (!dr_suspend_all_other_threads(&contexts, &count, &unsuspended))
    return;
  for (uint i = 0; i < count; i++) {
    struct thread *other = thread_of(contexts[i]);
    if (other != NULL)
      thread_flush_stopped(other);
  }
  dr_resume_all_other_threads(contexts, count);
}

void process_image_before_exec(struct thread *thread, struct system_call *call) {
  struct process_control *control = recording.control;
  flush_other_threads();
  thread_flush(thread);
  control->exec_thread = thread->id;
  control->exec_sequence = thread->encoder.frame.sequence;
  control->exec_position = thread->encoder.frame.position;
  control->exec_pending = 1;
}

void process_image_after_failed_exec(struct thread *thread) { recording.control->exec_pending = 0; }

void process_image_before_childs_call(int number) {
  void *drcontext = dr_get_current_drcontext();
  /* A vfork's child still shares the parent's memory, and with it the engine's state: there the
   * engine must see the exec. */
  if (!is_forked_child || number != SYS_execve)
    return;
  unrecorded_child_runs(process_id_of_caller(),
                        (const char *)(ptr_uint_t)dr_syscall_get_param(drcontext, 0));
  /* Only returns when it fails, and then so will the program's own call. */
  raw_system_call(SYS_execve, dr_syscall_get_param(drcontext, 0),
                  dr_syscall_get_param(drcontext, 1), dr_syscall_get_param(drcontext, 2));
}

/* In the child of a fork. Other threads are gone, and with them whoever held a lock. */
static void on_fork(void *drcontext) {
  struct thread *thread = thread_of(drcontext);
  pages_after_fork();
  block_plans_after_fork();
  code_table_after_fork();
  frame_after_fork();
  mapped_files_after_fork();
  selected_memory_after_fork();
  thread_identities_after_fork();
  wake_pairing_after_fork();
  call_paths_after_fork();
  if (recording_continue_in_child()) {
    frame_continue_in_child();
    thread_continue_in_child(thread);
    region_of_interest_continue_in_child(thread);
    return;
  }
  if (!recording.area->children)
    unrecorded_child_runs(process_id_of_caller(), dr_get_application_name());
  is_forked_child = true;
  recording.is_stopped = true;
  thread->is_recorded = false;
  thread->call_position = NULL;
}

void process_image_exits(int code) {
  recording.control->exit_status = (code & 0xff) << 8;
  __atomic_store_n(&recording.control->has_exited, 1, __ATOMIC_RELEASE);
}

void process_image_init(void) { dr_register_fork_init_event(on_fork); }

void process_image_exit(void) { dr_unregister_fork_init_event(on_fork); }

bool process_image_is_later(void) { return recording.control->exec_pending != 0; }
