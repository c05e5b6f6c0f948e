/* SPDX-License-Identifier: Apache-2.0 */
#include "wrapped_functions.h"

#include "drwrap.h"

#include "baton_checks.h"
#include "exported_functions.h"
#include "region_checks.h"
#include "region_of_interest.h"
#include "synchronisation.h"
#include "threads.h"

/* Without a context where a call was left without its return. */
static struct thread *thread_of_call(void *wrapping) {
  return thread_of(wrapping == NULL ? dr_get_current_drcontext() : drwrap_get_drcontext(wrapping));
}

static void before_call(void *wrapping, void **user_data) {
  struct thread *thread = thread_of_call(wrapping);
  if (!synchronisation_call_begins(thread, drwrap_get_mcontext_ex(wrapping, DR_MC_CONTROL)->xsp))
    return;
  thread->call.return_address = (uint64_t)(ptr_uint_t)drwrap_get_retaddr(wrapping);
  for (int i = 0; i < CALL_ARGUMENTS; i++)
    thread->call.argument[i] = (uint64_t)(ptr_uint_t)drwrap_get_arg(wrapping, i);
  synchronisation_call_enters(thread, *user_data);
}

static void after_call(void *wrapping, void *user_data) {
  int result = wrapping == NULL ? 0 : (int)(ptr_int_t)drwrap_get_retval(wrapping);
  synchronisation_call_returns(thread_of_call(wrapping), user_data,
                               wrapping == NULL ? NULL : &result);
}

static void wrap_synchronisation(const char *name, app_pc address, void *user_data) {
  const struct function *function = synchronisation_function(name);
  /* Versions of a function that are the same code are refused the second time. */
  if (function != NULL &&
      drwrap_wrap_ex(address, before_call, after_call, (void *)function, DRWRAP_FLAGS_NONE))
    baton_checks_meet_at(address);
}

static void find_region(const char *name, app_pc address, void *user_data) {
  region_checks_function(name, address);
}

void wrapped_functions_search(const module_data_t *module) {
  if (module_is_thread_library(module))
    exported_functions(module, wrap_synchronisation, NULL);
  else if (module_is_static_program(module))
    symbol_functions(module, wrap_synchronisation, NULL);
  if (!region_of_interest_has_functions() || module->full_path == NULL ||
      module->full_path[0] == '\0')
    return;
  symbol_functions(module, find_region, NULL);
  exported_functions(module, find_region, NULL);
}

void wrapped_functions_init(void) {
  drwrap_init();
  /* The leaner calls do not keep vector registers, which no synchronisation function is called
   * with. */
  drwrap_set_global_flags(DRWRAP_NO_FRILLS | DRWRAP_FAST_CLEANCALLS);
}

void wrapped_functions_exit(void) { drwrap_exit(); }
