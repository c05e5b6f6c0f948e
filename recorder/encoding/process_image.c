/* SPDX-License-Identifier: Apache-2.0 */
#include "process_image.h"

#include "arena.h"
#include "baton.h"
#include "call_path.h"
#include "code_table.h"
#include "frame.h"
#include "lifeline.h"
#include "mapped_files.h"
#include "platform.h"
#include "recording.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "supplies.h"
#include "thread_identity.h"
#include "unrecorded_children.h"
#include "wake_pairing.h"

#include <linux/sched.h>

void process_image_before_exec(struct thread *thread, struct system_call *call) {
  struct process_control *control = recording.control;
  platform_visit_stopped_threads(thread_flush);
  thread_flush(thread);
  control->exec_thread = thread->id;
  control->exec_sequence = thread->encoder.frame.sequence;
  control->exec_position = thread->encoder.frame.position;
  if (baton_has(thread))
    control->exec_clock = baton_clock(thread);
  control->exec_pending = 1;
}

void process_image_after_failed_exec(struct thread *thread) { recording.control->exec_pending = 0; }

bool process_image_forks(struct thread *thread) {
  pages_after_fork();
  code_table_after_fork();
  frame_after_fork();
  frame_forget_record((thread->system_call.flags & CLONE_FILES) != 0);
  mapped_files_after_fork();
  selected_memory_after_fork();
  thread_identities_after_fork();
  wake_pairing_after_fork();
  supplies_exit();
  call_paths_after_fork();
  if (recording_continue_in_child()) {
    lifeline_hold_in_child();
    frame_create_record();
    thread_continue_in_child(thread);
    region_of_interest_continue_in_child(thread);
    return true;
  }
  if (!recording.area->children)
    unrecorded_child_runs(process_id_of_caller(), platform_program_name());
  recording.is_stopped = true;
  thread->is_recorded = false;
  if (baton_has(thread))
    baton_end_in_child(thread);
  thread->call_position = NULL;
  return false;
}

void process_image_exits(int code) {
  recording.control->exit_status = (code & 0xff) << 8;
  __atomic_store_n(&recording.control->has_exited, 1, __ATOMIC_RELEASE);
}

bool process_image_is_later(void) { return recording.control->exec_pending != 0; }
