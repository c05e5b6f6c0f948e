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
#include "environment.h"
#include "frame.h"
#include "instrument.h"
#include "interruptions.h"
#include "mapped_files.h"
#include "memory_map.h"
#include "process_image.h"
#include "recording.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "signals.h"
#include "synchronisation.h"
#include "system_calls.h"
#include "thread.h"
#include "thread_identity.h"

static void on_module_load(void *drcontext, const module_data_t *module, bool loaded) {
  synchronisation_wrap_module(module);
  region_of_interest_search(module);
}

static void on_process_exit(void) {
  code_table_write_pending();
  drmgr_unregister_module_load_event(on_module_load);
  synchronisation_exit();
  process_image_exit();
  signals_exit();
  interruptions_exit();
  system_calls_exit();
  memory_map_exit();
  mapped_files_exit();
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
  if (argc != 2 || !recording_open(id, argv[1])) {
    environment_clean();
    return; /* A child of the recorded process: it runs on, unrecorded. */
  }
  drmgr_init();
  frame_init();
  code_table_init();
  thread_identities_init();
  selected_memory_init();
  threads_init();
  instrument_init();
  mapped_files_init();
  memory_map_init();
  system_calls_init();
  interruptions_init();
  signals_init();
  process_image_init();
  region_of_interest_init();
  synchronisation_init();
  drmgr_register_module_load_event(on_module_load);
  dr_register_exit_event(on_process_exit);
}
