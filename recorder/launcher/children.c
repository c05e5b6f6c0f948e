/* SPDX-License-Identifier: Apache-2.0 */
#include "children.h"

#include "complaint.h"
#include "ending.h"
#include "process_state.h"
#include "record_file.h"
#include "recorded_process.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

/* How often is looked who has ended. */
#define LOOK_MS 10
/* How often in a row a process must be gone without its parent's word before that is not awaited
 * any longer. */
#define LOOKS_AFTER_END 20u

/* What the launcher knows of the process with the same number in the control area. */
struct child {
  bool is_reaped; /* by us: it had lost its parent */
  int status;
  unsigned looks; /* since it was found gone */
};

void children_adopt(void) {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
    fail(EXIT_OURS, "--children needs a kernel that lets it adopt processes: %s", strerror(errno));
}

/* The wait status, from whoever knows it best. */
static int status_of(const struct process_control *control, const struct child *child) {
  if (child->is_reaped)
    return child->status;
  if (__atomic_load_n(&control->is_waited_for, __ATOMIC_ACQUIRE))
    return control->waited_status;
  if (__atomic_load_n(&control->is_seen_ended, __ATOMIC_ACQUIRE))
    return control->seen_status;
  return __atomic_load_n(&control->has_exited, __ATOMIC_ACQUIRE) ? control->exit_status
                                                                 : STATUS_UNKNOWN;
}

static bool seal(struct control_area *area, unsigned number, const char *roi,
                 const struct child *child) {
  struct process_control *control = &area->process[number];
  struct record_file file;
  control->is_sealed = 1;
  if (!record_file_open(&file, area, number)) {
    int status = status_of(control, child);
    /* It was killed before it had begun a record. */
    if (errno == ENOENT && control->write_error == 0 && control->images == 0 &&
        (status == STATUS_UNKNOWN || WIFSIGNALED(status)))
      return true;
    complain("%s: %s", file.partial_path,
             strerror(control->write_error != 0 ? (int)control->write_error : errno));
    return false;
  }
  bool is_sealed = ending_seal(&file, control, roi, status_of(control, child));
  free(file.path);
  free(file.partial_path);
  return is_sealed;
}

/* Notes the end of a process that was left to us. */
static void note_reaped(const struct control_area *area, struct child *children, int process,
                        int status) {
  for (unsigned i = control_area_count(area); i-- > 1;) {
    if (area->process[i].process == process && !area->process[i].is_sealed) {
      children[i].is_reaped = true;
      children[i].status = status;
      return;
    }
  }
}

/* Seals the records of those that have ended; `is_last` when no process is left at all. */
static bool seal_ended(struct control_area *area, struct child *children, const char *roi,
                       bool is_last) {
  bool are_sealed = true;
  unsigned count = control_area_count(area);
  for (unsigned i = 1; i < count; i++) {
    const struct process_control *control = &area->process[i];
    struct child *child = &children[i];
    if (__atomic_load_n(&control->process, __ATOMIC_ACQUIRE) == 0 || control->is_sealed)
      continue;
    if (!is_last && recorded_process_is_kept(control))
      continue;
    if (!is_last && !child->is_reaped) {
      if (process_is_running(control->process, control->start_time))
        continue;
      if (!control->is_waited_for && child->looks++ < LOOKS_AFTER_END)
        continue;
    }
    are_sealed = seal(area, i, roi, child) && are_sealed;
  }
  return are_sealed;
}

int children_wait(struct control_area *area, const char *roi, int *has_failed) {
  struct child *children = calloc(CONTROL_PROCESSES_MAX, sizeof(*children));
  if (children == NULL)
    fail(EXIT_OURS, "out of memory");
  int first_status = 0, status;
  while (true) {
    int process = waitpid(-1, &status, WNOHANG);
    if (process < 0 && errno == ECHILD)
      break;
    if (process > 0 && process == recorded_process_id()) {
      first_status = status;
      recorded_process_has_ended();
    } else if (process > 0) {
      note_reaped(area, children, process, status);
    } else {
      recorded_process_tell_late();
      if (!seal_ended(area, children, roi, false))
        *has_failed = 1;
      nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    }
  }
  if (!seal_ended(area, children, roi, true))
    *has_failed = 1;
  if (area->processes > CONTROL_PROCESSES_MAX)
    complain("%u children came after as many as can be recorded; they ran unrecorded",
             area->processes - CONTROL_PROCESSES_MAX);
  free(children);
  return first_status;
}
