/* SPDX-License-Identifier: Apache-2.0 */
/* The recording client: what the engine loads into the program. It opens the recording, switches
 * the parts on, and switches them off when the process ends.
 *
 *   instrument ──raw words──► thread ──► encoder ──streams──► frame ──► the record
 *   block_plan ──► code_table ─────────────────────blocks───► frame
 */
#include "dr_api.h"

#include "drmgr.h"

#include "code_table.h"
#include "frame.h"
#include "instrument.h"
#include "recording.h"
#include "thread.h"

static dr_signal_action_t on_signal(void *drcontext, dr_siginfo_t *signal) {
  if (instrument_handle_fault(drcontext, signal))
    return DR_SIGNAL_SUPPRESS;
  return DR_SIGNAL_DELIVER;
}

static void on_process_exit(void) {
  code_table_write_pending();
  instrument_exit();
  drmgr_unregister_signal_event(on_signal);
  threads_exit();
  code_table_exit();
  frame_exit();
  recording_close();
  drmgr_exit();
}

DR_EXPORT void dr_client_main(client_id_t id, int argc, const char *argv[]) {
  (void)id;
  dr_set_client_name("Fencepost recorder", "the project's issue tracker");
  if (argc != 2 || !recording_open(argv[1]))
    return; /* A child of the recorded process: it runs on, unrecorded. */
  drmgr_init();
  frame_init();
  code_table_init();
  threads_init();
  instrument_init();
  drmgr_register_signal_event(on_signal);
  dr_register_exit_event(on_process_exit);
}
