/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher: fencepost-record. It prepares the record, starts the program under the engine with
 * the recording client, outlives it whatever happens to it, and seals the record. */
#include "arguments.h"
#include "complaint.h"
#include "record_file.h"
#include "recorded_process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void copy_option(char *to, size_t capacity, const char *what, const char *value) {
  if (value == NULL)
    return;
  if (strlen(value) >= capacity)
    fail(EXIT_WRONG_OPTIONS, "%s is too long", what);
  strcpy(to, value);
}

/* Ends as the program ended. */
static int end_like(int status) {
  if (!WIFSIGNALED(status))
    return WEXITSTATUS(status);
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

/* Whether the client recorded to the end; otherwise says why not. */
static bool is_complete(const struct control_area *control, const struct record_file *file,
                        int status) {
  if (control->images == 0) {
    /* The child has said why where it could not even start the engine. */
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_OURS)
      complain("the program ended before it could be recorded");
    return false;
  }
  switch (control->stopped_reason) {
  case STOP_NONE:
    if (WIFEXITED(status) && control->live_threads != 0) {
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

int main(int argc, char **argv) {
  struct arguments arguments;
  struct program program;
  struct record_file file;
  int control_descriptor;
  arguments_parse(&arguments, argc, argv);
  program_find(&program, arguments.program);
  struct control_area *control = control_area_create(&control_descriptor);
  copy_option(control->roi, sizeof(control->roi), "--roi", arguments.roi);
  copy_option(control->pm_selector, sizeof(control->pm_selector), "--pm", arguments.pm);
  control->values = arguments.values;
  record_file_create(&file, &arguments, &program);
  copy_option(control->record_path, sizeof(control->record_path), "the record's path",
              file.partial_path);
  int status = recorded_process_run(&program, control, control_descriptor);
  if (!is_complete(control, &file, status)) {
    record_file_discard(&file);
    return EXIT_OURS;
  }
  if (arguments.roi != NULL && control->roi_boundaries < 2)
    complain("--roi %s: the region %s", arguments.roi,
             control->roi_boundaries == 0 ? "was never reached" : "has no end");
  if (control->exec_pending)
    complain(
        "the program replaced itself by one that could not be recorded; the record ends there");
  char ended[32];
  if (WIFSIGNALED(status))
    snprintf(ended, sizeof(ended), "signal %d", WTERMSIG(status));
  else
    snprintf(ended, sizeof(ended), "exit %d", WEXITSTATUS(status));
  if (!record_file_seal(&file, ended, control->live_threads))
    return EXIT_OURS;
  return end_like(status);
}
