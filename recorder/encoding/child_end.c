/* SPDX-License-Identifier: Apache-2.0 */
#include "child_end.h"

#include "fields.h"
#include "platform.h"
#include "record_format.h"
#include "recording.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void child_end_send(struct thread *thread, uint64_t number) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, number);
  fields_send_clocked(&fields, thread, EVENT_CHILD_WAIT, clock_advance());
}

/* What the caller was told: a child has ended. */
static void note(struct thread *thread, int32_t process, const int *status) {
  struct process_control *child = recording_of_ended(process);
  if (child == NULL)
    return;
  if (status != NULL) {
    child->waited_status = *status;
    __atomic_store_n(&child->is_waited_for, 1, __ATOMIC_RELEASE);
  }
  if (recording.tree == NULL)
    return;
  child->is_told = 1;
  child_end_send(thread, (uint64_t)recording_number(child));
}

/* There are no children, or not this one (0: any): where the kernel keeps no ends, they have all
 * ended. */
static void note_vanished(struct thread *thread, int32_t process) {
  if (!recording.control->keeps_no_ends)
    return;
  for (uint32_t i = 1; i < recording.area->processes && i < CONTROL_PROCESSES_MAX; i++) {
    const struct process_control *child = &recording.area->process[i];
    if (child->parent == recording.process && !child->is_told &&
        (process == 0 || process == child->process))
      note(thread, child->process, NULL);
  }
}

static void after_wait4(struct thread *thread, const struct system_call *call, int64_t result) {
  int status;
  size_t read;
  if (call->argument[1] == 0) {
    if ((call->argument[2] & (WUNTRACED | WCONTINUED)) == 0)
      note(thread, (int32_t)result, NULL);
  } else if (platform_read((const void *)(uintptr_t)call->argument[1], sizeof(status), &status,
                           &read) &&
             (WIFEXITED(status) || WIFSIGNALED(status))) {
    note(thread, (int32_t)result, &status);
  }
}

static void after_waitid(struct thread *thread, const struct system_call *call) {
  siginfo_t end;
  size_t read;
  if ((call->argument[3] & WNOWAIT) != 0)
    return;
  if (call->argument[2] == 0) {
    if (call->argument[0] == P_PID && call->argument[3] == WEXITED)
      note(thread, (int32_t)call->argument[1], NULL);
    return;
  }
  if (!platform_read((const void *)(uintptr_t)call->argument[2], sizeof(end), &end, &read) ||
      end.si_pid == 0)
    return;
  int status = end.si_code == CLD_EXITED ? (end.si_status & 0xff) << 8 : end.si_status;
  if (end.si_code == CLD_EXITED || end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED)
    note(thread, end.si_pid, &status);
}

void child_end_after_wait(struct thread *thread, const struct system_call *call, int64_t result) {
  if (!recording.area->children)
    return;
  int32_t id = (int32_t)call->argument[call->x86_64 == SYS_wait4 ? 0 : 1];
  bool is_any = call->x86_64 == SYS_wait4 ? id == -1 : call->argument[0] == P_ALL;
  bool is_one = call->x86_64 == SYS_wait4 ? id > 0 : call->argument[0] == P_PID;
  if (result == -ECHILD && (is_any || is_one))
    note_vanished(thread, is_any ? 0 : id);
  else if (call->x86_64 == SYS_wait4 && result > 0)
    after_wait4(thread, call, result);
  else if (call->x86_64 == SYS_waitid && result == 0)
    after_waitid(thread, call);
}
