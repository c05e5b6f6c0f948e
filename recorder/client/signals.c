/* SPDX-License-Identifier: Apache-2.0 */
#include "signals.h"

#include "dr_api.h"

#include "drmgr.h"

#include "fields.h"
#include "instrument.h"
#include "interrupted_execution.h"
#include "record_format.h"
#include "synchronisation.h"
#include "threads.h"

#include <signal.h>

static bool is_fault(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
         number == SIGTRAP;
}

static dr_signal_action_t on_signal(void *drcontext, dr_siginfo_t *information) {
  if (instrument_handle_fault(drcontext, information))
    return DR_SIGNAL_SUPPRESS;
  if (is_fault(information->sig) && information->raw_mcontext_valid)
    interrupt_block(thread_of(drcontext), (uint64_t)(ptr_uint_t)information->mcontext->pc);
  return DR_SIGNAL_DELIVER;
}

static void on_transfer(void *drcontext, const dr_kernel_xfer_info_t *transfer) {
  struct thread *thread = thread_of(drcontext);
  if (!thread->is_recorded)
    return;
  if (transfer->type == DR_XFER_SIGNAL_RETURN) {
    synchronisation_resume_call(thread);
  } else if (transfer->type == DR_XFER_SIGNAL_DELIVERY) {
    synchronisation_suspend_call(thread);
    struct fields fields;
    fields_begin(&fields);
    fields_number(&fields, (uint64_t)transfer->sig);
    fields_send(&fields, thread, EVENT_SIGNAL);
  }
}

void signals_init(void) {
  drmgr_register_signal_event(on_signal);
  drmgr_register_kernel_xfer_event(on_transfer);
}

void signals_exit(void) {
  drmgr_unregister_signal_event(on_signal);
  drmgr_unregister_kernel_xfer_event(on_transfer);
}
