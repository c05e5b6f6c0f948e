/* SPDX-License-Identifier: Apache-2.0 */
#include "module_events.h"

#include "drmgr.h"

#include "loaded_modules.h"
#include "threads.h"
#include "wrapped_functions.h"

struct loaded_module module_describe(const module_data_t *module) {
  const char *path = module->full_path;
  if (path == NULL || path[0] == '\0')
    path = dr_module_preferred_name(module);
  return (struct loaded_module){.start = (uint64_t)(ptr_uint_t)module->start,
                                .end = (uint64_t)(ptr_uint_t)module->end,
                                .linked_at = (uint64_t)(ptr_uint_t)module->preferred_base,
                                .path = path};
}

static void on_module(void *drcontext, const module_data_t *module, bool loaded) {
  struct thread *thread = thread_of(drcontext);
  if (thread != NULL && thread->is_recorded) {
    struct loaded_module described = module_describe(module);
    loaded_module_send(thread, &described);
  }
  wrapped_functions_search(module);
}

void module_events_init(void) { drmgr_register_module_load_event(on_module); }

void module_events_exit(void) { drmgr_unregister_module_load_event(on_module); }
