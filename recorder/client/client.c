/* SPDX-License-Identifier: Apache-2.0 */
/* The recording client: what the engine loads into the program. It opens the recording, switches
 * the parts on, and switches them off when the process ends. All that does not depend on the engine
 * is the encoding's (encoding/platform.h).
 *
 *   instrument ──raw words──► encoding/thread ──► encoder ──streams──► frame ──► the record
 *   block_plan ──► encoding/code_table ────────────────────blocks────► frame
 */
#include "dr_api.h"

#include "drmgr.h"

#include "baton.h"
#include "baton_checks.h"
#include "chance_instructions.h"
#include "code_table.h"
#include "descriptor_limit.h"
#include "environment.h"
#include "frame.h"
#include "initial_stack.h"
#include "instrument.h"
#include "keeper.h"
#include "lifeline.h"
#include "mapped_files.h"
#include "marks.h"
#include "module_events.h"
#include "process_events.h"
#include "recording.h"
#include "region_checks.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "signal_actions.h"
#include "signals.h"
#include "synchronisation.h"
#include "system_call_events.h"
#include "thread_identity.h"
#include "threads.h"
#include "wrapped_functions.h"

static void on_process_exit(void) {
  keeper_end();
  code_table_write_pending();
  wrapped_functions_exit();
  synchronisation_exit();
  process_events_exit();
  signals_exit();
  system_call_events_exit();
  module_events_exit();
  mapped_files_exit();
  chance_instructions_exit();
  marks_exit();
  baton_checks_exit();
  region_checks_exit();
  instrument_exit();
  threads_exit();
  selected_memory_exit();
  thread_identities_exit();
  code_table_exit();
  frame_exit();
  recording_close();
  drmgr_exit();
}

DR_EXPORT void dr_client_main(client_id_t id, int argc, const char *argv[]) {
  dr_set_client_name("Fencepost recorder", "the project's issue tracker");
  pages_init();
  if (argc != 2 || !recording_open(dr_get_client_path(id), argv[1])) {
    environment_clean();
    return; /* A child of the recorded process: it runs on, unrecorded. */
  }
  drmgr_init();
  lifeline_hold();
  signal_actions_init();
  descriptor_limit_init();
  frame_init();
  keeper_begin();
  code_table_init();
  thread_identities_init();
  selected_memory_init();
  baton_init();
  if (baton_is_passed)
    initial_stack_hide_chance();
  region_of_interest_init();
  threads_init();
  region_checks_init();
  instrument_init();
  baton_checks_init();
  marks_init();
  chance_instructions_init();
  mapped_files_init();
  module_events_init();
  system_call_events_init();
  signals_init();
  process_events_init();
  synchronisation_init();
  wrapped_functions_init();
  dr_register_exit_event(on_process_exit);
}
