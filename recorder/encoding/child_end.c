/* SPDX-License-Identifier: Apache-2.0 */
#include "child_end.h"

#include "platform.h"
#include "recording.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void note(int32_t process, int status) {
  struct process_control *child = recording_of_process(process);
  if (child == NULL)
    return;
  child->waited_status = status;
  __atomic_store_n(&child->is_waited_for, 1, __ATOMIC_RELEASE);
}

static void after_wait4(const struct system_call *call, int64_t result) {
  int status;
  size_t read;
  if (call->argument[1] != 0 &&
      platform_read((const void *)(uintptr_t)call->argument[1], sizeof(status), &status, &read) &&
      (WIFEXITED(status) || WIFSIGNALED(status)))
    note((int32_t)result, status);
}

static void after_waitid(const struct system_call *call) {
  siginfo_t end;
  size_t read;
  if (call->argument[2] == 0 ||
      !platform_read((const void *)(uintptr_t)call->argument[2], sizeof(end), &end, &read) ||
      end.si_pid == 0)
    return;
  if (end.si_code == CLD_EXITED)
    note(end.si_pid, (end.si_status & 0xff) << 8);
  else if (end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED)
    note(end.si_pid, end.si_status);
}

void child_end_after_wait(const struct system_call *call, int64_t result) {
  if (!recording.area->children)
    return;
  if (call->x86_64 == SYS_wait4 && result > 0)
    after_wait4(call, result);
  else if (call->x86_64 == SYS_waitid && result == 0)
    after_waitid(call);
}
