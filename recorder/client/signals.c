/* SPDX-License-Identifier: Apache-2.0 */
#include "signals.h"

#include "dr_api.h"

#include "drmgr.h"

#include "code_table.h"
#include "fields.h"
#include "instrument.h"
#include "raw_words.h"
#include "record_format.h"
#include "selected_memory.h"
#include "synchronisation.h"

#include <signal.h>

static bool is_fault(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
         number == SIGTRAP;
}

/* Index of the instruction at `address`; the block's length where it has none there. */
static uint32_t instruction_at(const struct block *block, uint64_t address) {
  uint64_t at = block->address;
  uint32_t i = 0;
  while (i < block->instructions && at != address)
    at += block->lengths[i++];
  return i;
}

/* The block that was executing stopped before the instruction at `pc`. */
static void interrupt_block(struct thread *thread, uint64_t pc) {
  if (!thread->is_recorded || thread->call_depth > 0)
    return;
  if (*thread->position > thread->guard)
    thread_drain(thread);
  uint64_t *end = *thread->position;
  uint64_t *last = (uint64_t *)raw_words_last_record(thread->buffer, end);
  if (last == NULL || word_is_marker(*last))
    return;
  const struct block *block = code_table_get((uint32_t)*last);
  uint32_t executed = instruction_at(block, pc);
  if (executed == block->instructions)
    return;
  /* What was not reached still holds an older execution's words. */
  uint64_t *first = last + (values_are_recorded ? VALUES_WORD + 1 : 1);
  for (uint64_t *word = first; word < end; word++) {
    if (!block_word_is_reached(block, (uint32_t)(word - last), executed))
      *word = 0;
  }
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, executed);
  fields_send(&fields, thread, EVENT_INTERRUPTED);
}

static dr_signal_action_t on_signal(void *drcontext, dr_siginfo_t *information) {
  if (instrument_handle_fault(drcontext, information))
    return DR_SIGNAL_SUPPRESS;
  if (is_fault(information->sig))
    write_order_end(thread_of(drcontext));
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
