/* SPDX-License-Identifier: Apache-2.0 */
#include "ending.h"

#include "complaint.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static bool has_exited(int status) { return status != STATUS_UNKNOWN && WIFEXITED(status); }

/* Whether the client recorded to the end; otherwise says why not. */
static bool is_complete(const struct process_control *control, const struct record_file *file,
                        int status) {
  if (control->images == 0) {
    /* The child has said why where it could not even start the engine. */
    if (!has_exited(status) || WEXITSTATUS(status) != EXIT_OURS)
      complain("the program ended before it could be recorded");
    return false;
  }
  switch (control->stopped_reason) {
  case STOP_NONE:
    if (has_exited(status) && control->live_threads != 0 && !control->exec_pending) {
      complain("the engine ended the program, which is a fault of the recorder");
      return false;
    }
    return true;
  case STOP_WRITE_FAILED:
    complain("%s could not be written: %s; the program ran on unrecorded", file->path,
             strerror((int)control->write_error));
    return false;
  case STOP_TOO_MANY_BLOCKS:
    complain("the program has more code than a record can hold; it ran on unrecorded");
    return false;
  default:
    complain("the program has more threads than a record can hold; it ran on unrecorded");
    return false;
  }
}

/* What was not as it is without us. */
static void say_withheld(const struct process_control *control, const struct record_file *file) {
  if ((control->withheld & WITHHELD_MEMORY) != 0)
    complain("%s: the program tried to change mappings of the recorder; they were left alone",
             file->path);
  if ((control->withheld & WITHHELD_LIMIT) != 0)
    complain(
        "%s: the program's limits on its memory or on the size of files were not applied: they "
        "would limit the recorder too",
        file->path);
  if ((control->withheld & WITHHELD_FILTER) != 0)
    complain("%s: the program asked for a filter of system calls (seccomp), which was refused: it "
             "would stop the recorder's too",
             file->path);
}

/* That a region of interest lies beyond the end, wholly or in part: if it counts instructions, with
 * how many there are. */
static void say_region(const struct process_control *control, const struct record_file *file,
                       const char *roi) {
  const char *how = control->roi_boundaries == 0 ? "was never reached" : "has no end";
  if (file->instructions != 0)
    complain("%s: --every: there is no whole window: the program executed only %llu instructions",
             file->path, (unsigned long long)control->instructions);
  else if (strspn(roi, "0123456789:") == strlen(roi))
    complain("%s: --roi %s: the region %s: the program executed only %llu instructions", file->path,
             roi, how, (unsigned long long)control->instructions);
  else
    complain("%s: --roi %s: the region %s", file->path, roi, how);
}

bool ending_seal(struct record_file *file, const struct process_control *control, const char *roi,
                 int status) {
  if (!is_complete(control, file, status)) {
    record_file_discard(file);
    return false;
  }
  if (roi != NULL && control->roi_boundaries < 2)
    say_region(control, file, roi);
  if (control->exec_pending)
    complain("%s: the program replaced itself by one that could not be recorded; the record ends "
             "there",
             file->path);
  say_withheld(control, file);
  char ended[32] = "unknown";
  if (has_exited(status))
    snprintf(ended, sizeof(ended), "exit %d", WEXITSTATUS(status));
  else if (status != STATUS_UNKNOWN) {
    snprintf(ended, sizeof(ended), "signal %d", WTERMSIG(status));
    complain("%s: the program was ended by %s: the record holds what it did until then", file->path,
             ended);
  }
  return record_file_seal(file, ended, control);
}
