/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher: fencepost-record. It prepares the record, starts the program under the engine with
 * the recording client, outlives it whatever happens to it, and seals the record. */
#include "arguments.h"
#include "children.h"
#include "complaint.h"
#include "emulator.h"
#include "ending.h"
#include "record_file.h"
#include "record_info.h"
#include "recorded_process.h"
#include "sharers.h"
#include "tree_watch.h"
#include "unrecorded.h"

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

/* Where the names of the children's records come apart: before a suffix. */
static void name_children(struct control_area *control, const char *path) {
  const char *name = strrchr(path, '/') + 1, *dot = strrchr(name, '.');
  size_t length = dot == NULL || dot == name ? strlen(path) : (size_t)(dot - path);
  copy_option(control->child_prefix, sizeof(control->child_prefix), "the record's path", path);
  control->child_prefix[length] = '\0';
  copy_option(control->child_suffix, sizeof(control->child_suffix), "the record's path",
              path + length);
}

int main(int argc, char **argv) {
  struct arguments arguments;
  struct program program;
  struct emulator emulator;
  struct record_file file;
  int control_descriptor, has_failed = 0;
  arguments_parse(&arguments, argc, argv);
  program_find(&program, arguments.program);
  struct control_area *control = control_area_create(&control_descriptor);
  copy_option(control->roi, sizeof(control->roi), "--roi", arguments.roi);
  copy_option(control->pm_selector, sizeof(control->pm_selector), "--pm", arguments.pm);
  control->values = arguments.values;
  control->children = arguments.children;
  control->lists = arguments.lists;
  control->one_order = program.machine != MACHINE_AARCH64;
  control->has_tree = control->children && control->one_order;
  control->warm = arguments.values || !control->one_order ? CONTROL_WARM_ALL : arguments.warm;
  control->every = arguments.every;
  if (control->every != 0 && program.machine == MACHINE_AARCH64)
    fail(EXIT_WRONG_OPTIONS, "--every: AArch64 programs are recorded whole");
  control->real_time = arguments.real_time;
  control->seed = arguments.seed;
  control->schedule = arguments.schedule;
  if (arguments.children)
    children_adopt();
  if (program.machine == MACHINE_AARCH64)
    emulator_find(&emulator, &arguments, &program);
  copy_option(control->program, sizeof(control->program), "the program's path", program.path);
  copy_option(control->isa, sizeof(control->isa), "the instruction set's name",
              program.machine == MACHINE_AARCH64 ? ISA_AARCH64 : ISA_X86_64);
  copy_option(control->engine, sizeof(control->engine), "the engine's name",
              program.machine == MACHINE_AARCH64 ? emulator.engine : "DynamoRIO " ENGINE_VERSION);
  recorded_process_hold_signals();
  record_file_create(&file, &arguments, &program, control);
  copy_option(control->record_path, sizeof(control->record_path), "the record's path",
              file.partial_path);
  name_children(control, file.path);
  recorded_process_start(&program, program.machine == MACHINE_AARCH64 ? &emulator : NULL, control,
                         control_descriptor, arguments.starter);
  if (control->has_tree)
    tree_watch_begin(control);
  sharers_watch(control);
  int status = arguments.children ? children_wait(control, arguments.roi, &has_failed)
                                  : recorded_process_wait();
  recorded_process_await_keeper();
  if (recorded_process_is_abandoned()) {
    record_file_discard(&file);
    if (arguments.is_temporary)
      record_file_remove_folder(&file);
    return EXIT_OURS;
  }
  unrecorded_say(control);
  struct sharers sharers;
  sharers_find(&sharers);
  file.sharers = &sharers;
  file.instructions = control->every != 0 ? control->process[0].instructions : 0;
  unsigned count = control_area_count(control);
  file.processes = control->has_tree && count > 1 ? count : 0;
  if (!ending_seal(&file, &control->process[0], arguments.roi, status) || has_failed)
    return EXIT_OURS;
  return end_like(status);
}
