/* SPDX-License-Identifier: Apache-2.0 */
#include "signals.h"

#include "dr_api.h"

#include "drmgr.h"

#include "baton.h"
#include "fields.h"
#include "instrument.h"
#include "interrupted_execution.h"
#include "raw_system_call.h"
#include "record_format.h"
#include "recording.h"
#include "supplies.h"
#include "synchronisation.h"
#include "threads.h"
#include "vsyscall_page.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#define NANOSECONDS_PER_SECOND 1000000000ull

static bool is_fault(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
         number == SIGTRAP;
}

/* The launcher then does not hand on another copy. */
static void note_taken(int number) {
  struct timespec now;
  if (number <= 0 || number >= CONTROL_SIGNALS ||
      recording.control->process != process_id_of_caller())
    return;
  raw_system_call(SYS_clock_gettime, CLOCK_MONOTONIC, (uintptr_t)&now, 0);
  recording.control->taken_ns[number] =
      (uint64_t)now.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t)now.tv_nsec;
}

void signals_after_call(int number, int64_t result) {
  if (number == SYS_rt_sigtimedwait)
    note_taken((int)result);
}

static dr_signal_action_t on_signal(void *drcontext, dr_siginfo_t *information) {
  note_taken(information->sig);
  if (instrument_handle_fault(drcontext, information))
    return DR_SIGNAL_SUPPRESS;
  if (vsyscall_page_called(drcontext, information))
    return DR_SIGNAL_REDIRECT;
  if (is_fault(information->sig) && information->raw_mcontext_valid)
    interrupt_block(thread_of(drcontext), (uint64_t)(ptr_uint_t)information->mcontext->pc);
  return DR_SIGNAL_DELIVER;
}

static void on_transfer(void *drcontext, const dr_kernel_xfer_info_t *transfer) {
  struct thread *thread = thread_of(drcontext);
  if (baton_has(thread))
    baton_leave_call(thread);
  if (!thread_is_followed(thread))
    return;
  if (transfer->type == DR_XFER_SIGNAL_RETURN) {
    synchronisation_resume_call(thread);
  } else if (transfer->type == DR_XFER_SIGNAL_DELIVERY) {
    synchronisation_suspend_call(thread);
    if (baton_has(thread))
      supplies_signal(thread, (uint32_t)transfer->sig);
    struct fields fields;
    fields_begin(&fields);
    fields_number(&fields, (uint64_t)transfer->sig);
    fields_send(&fields, thread, EVENT_SIGNAL);
  }
}

/* What a thread asks of itself are faults, which on_signal sees, but for a write to code of its own
 * (engine/patches/modified_code.patch). */
static bool on_translation(void *drcontext, bool will_leave, dr_restore_state_info_t *information) {
  const dr_fault_fragment_info_t *fragment = &information->fragment_info;
  struct thread *thread = thread_of(drcontext);
  if (thread != NULL && drcontext == dr_get_current_drcontext() && will_leave &&
      fragment->cache_start_pc == NULL && fragment->tag != NULL)
    interrupt_block(thread, (uint64_t)(ptr_uint_t)information->mcontext->pc);
  return true;
}

void signals_init(void) {
  drmgr_register_signal_event(on_signal);
  drmgr_register_kernel_xfer_event(on_transfer);
  drmgr_register_restore_state_ex_event(on_translation);
}

void signals_exit(void) {
  drmgr_unregister_signal_event(on_signal);
  drmgr_unregister_kernel_xfer_event(on_transfer);
  drmgr_unregister_restore_state_ex_event(on_translation);
}
