/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder as a plugin of qemu-aarch64. It opens the recording, switches the parts on, and ends
 * the threads' records when the process ends. All that does not depend on the engine is the
 * encoding's (encoding/platform.h).
 *
 *   executions ──raw words──► encoding/thread ──► encoder ──streams──► frame ──► the record
 *   plan ──► encoding/code_table ────────────────────blocks────► frame
 *
 * Arguments: control=FILE, the launcher's control area; or check=on, which records nothing but sees
 * whether the recorder understands this QEMU (check.h); compare=on to compare addresses with
 * QEMU's.
 */
#include "check.h"
#include "code_table.h"
#include "engine.h"
#include "executions.h"
#include "frame.h"
#include "guest.h"
#include "guest_calls.h"
#include "guest_mappings.h"
#include "guest_modules.h"
#include "lifeline.h"
#include "mapped_files.h"
#include "plan.h"
#include "platform.h"
#include "plugin_api.h"
#include "recording.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "special_blocks.h"
#include "synchronisation.h"
#include "thread_identity.h"
#include "watched_accesses.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN_EXPORT __attribute__((visibility("default")))

/* The interface's version: the oldest that has what is used. Registers are in it from 2 on, and an
 * emulator that offers them takes no older plugin. */
PLUGIN_EXPORT int qemu_plugin_version = 1;

__attribute__((constructor)) static void choose_version(void) {
  if (dlsym(RTLD_DEFAULT, "qemu_plugin_read_register") != NULL)
    qemu_plugin_version = 2;
}

static bool says_comparison;

static void say_comparison(void) {
  uint64_t compared, different;
  executions_checked(&compared, &different);
  fprintf(stderr, "fencepost: recorder: %llu addresses compared with QEMU's, %llu differ\n",
          (unsigned long long)compared, (unsigned long long)different);
}

static void finish(void) {
  guests_end_all();
  if (!recording.is_stopped)
    code_table_write_pending();
  if (says_comparison)
    say_comparison();
}

/* A thread has met a fault where it stands at an instruction that accesses memory: other signals
 * come between two blocks, which hardly ever begin with one that the block before has, too. */
static void stop_at_fault(struct guest *guest) {
  uint64_t stopped_at = engine_program_counter(guest->vcpu);
  struct a64_access access;
  uint32_t word;
  size_t read;
  bool is_fault = platform_read((const void *)(uintptr_t)stopped_at, sizeof(word), &word, &read) &&
                  a64_access_of(word, &access);
  watched_access_stops(guest, is_fault ? stopped_at : NO_ADDRESS);
}

static void on_process_end(qemu_plugin_id_t id, void *user_data) {
  (void)id, (void)user_data;
  if (process_id_of_caller() != recording.process)
    return;
  /* QEMU 10 also ends so before it dies of a signal. */
  if (the_guest != NULL && !the_guest->has_asked_to_end)
    stop_at_fault(the_guest);
  finish();
}

static bool dumps_core(int signal) {
  switch (signal) {
  case SIGABRT:
  case SIGBUS:
  case SIGFPE:
  case SIGILL:
  case SIGQUIT:
  case SIGSEGV:
  case SIGTRAP:
    return true;
  default:
    return false;
  }
}

/* The program has no handler for the signal. It is where it has met it: within a block, where that
 * was a fault. */
static void on_death(int signal) {
  if (process_id_of_caller() != recording.process)
    return;
  /* It stops them itself before it writes a core, and would wait for itself. */
  bool are_stopped = dumps_core(signal) || engine_stop_others();
  if (the_guest != NULL) {
    /* Other signals come between two blocks. */
    bool is_fault = signal != SIGABRT && signal != SIGQUIT && dumps_core(signal);
    watched_access_stops(the_guest,
                         is_fault ? engine_program_counter(the_guest->vcpu) : NO_ADDRESS);
  }
  /* They stay where they are until the signal has ended them; where they run, their last buffers
   * are lost. */
  if (are_stopped)
    finish();
  else
    guest_end();
}

static void on_block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
  static bool has_modules;
  if (!__atomic_test_and_set(&has_modules, __ATOMIC_SEQ_CST))
    guest_modules_find();
  executions_translate(id, block);
}

static int refuse(const char *why) {
  fprintf(stderr, "fencepost: recorder: %s\n", why);
  return -1;
}

static const char *value_of(const char *argument, const char *name) {
  size_t length = strlen(name);
  return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1
                                                                         : NULL;
}

static void start(qemu_plugin_id_t id) {
  lifeline_hold();
  frame_init();
  code_table_init();
  thread_identities_init();
  selected_memory_init();
  mapped_files_init();
  region_of_interest_init();
  synchronisation_init();
  special_blocks_init();
  plans_init();
  guest_modules_init();
  guest_mappings_init();
  engine_before_death(on_death);
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_block_translated);
  qemu_plugin_register_vcpu_syscall_cb(id, guest_call_begins);
  qemu_plugin_register_vcpu_syscall_ret_cb(id, guest_call_ends);
  qemu_plugin_register_atexit_cb(id, on_process_end, NULL);
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int count,
                                      char **argument) {
  Dl_info self;
  const char *control = NULL;
  (void)info;
  const char *problem = engine_open();
  if (problem != NULL)
    return refuse(problem);
  for (int i = 0; i < count; i++) {
    if (value_of(argument[i], "check") != NULL) {
      check_install(id);
      return 0;
    }
    if (value_of(argument[i], "control") != NULL)
      control = value_of(argument[i], "control");
    says_comparison |= value_of(argument[i], "compare") != NULL;
  }
  pages_init();
  if (control == NULL || dladdr(&qemu_plugin_version, &self) == 0 ||
      !recording_open(self.dli_fname, control))
    return refuse("there is no launcher that it records for");
  if (says_comparison)
    executions_check();
  start(id);
  return 0;
}
