/* SPDX-License-Identifier: Apache-2.0 */
#include "interruptions.h"

#include "dr_api.h"

#include "drmgr.h"

#include "code_table.h"
#include "fields.h"
#include "raw_words.h"
#include "record_format.h"
#include "selected_memory.h"
#include "write_order.h"

#define INTERRUPTION_WORDS (1 + (VARINT_BYTES_MAX + 7) / 8)

/* Index of the instruction at `address`; the block's length where it has none there. */
static uint32_t instruction_at(const struct block *block, uint64_t address) {
  uint64_t at = block->address;
  uint32_t i = 0;
  while (i < block->instructions && at != address)
    at += block->lengths[i++];
  return i;
}

void interrupt_block(struct thread *thread, uint64_t pc) {
  write_order_end(thread);
  if (!thread->is_recorded || thread->call_depth > 0)
    return;
  const uint64_t *start = raw_words_last_record(thread->buffer, *thread->position);
  if (start == NULL || word_is_marker(*start))
    return;
  /* The interruption stands behind its execution whenever that is looked at. */
  if (*thread->position + INTERRUPTION_WORDS > thread->guard) {
    thread_drain_before(thread, start);
    start = raw_words_last_record(thread->buffer, *thread->position);
  }
  uint64_t *last = (uint64_t *)start, *end = *thread->position;
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

/* Whether an instruction may have been done in part. */
static bool has_parts(instr_t *instr) {
  return instr_is_rep_string_op(instr) || instr_is_gather(instr) || instr_is_scatter(instr);
}

/* Whether the code at `pc` in the engine's cache is an instruction of the program that has not
 * begun. `code` is the fragment's, which begins at `at`. */
static bool is_at_program_instruction(void *drcontext, instrlist_t *code, const byte *at,
                                      const byte *pc) {
  instr_t *instr = instrlist_first(code);
  app_pc before = NULL; /* of the program's instruction before it */
  for (; instr != NULL && (at < pc || instr_length(drcontext, instr) == 0);
       instr = instr_get_next(instr)) {
    at += instr_length(drcontext, instr);
    if (instr_is_app(instr))
      before = instr_get_app_pc(instr);
  }
  /* Behind a conditional jump stands the engine's own, for where that is not taken. */
  return instr != NULL && at == pc && instr_is_app(instr) && instr_get_app_pc(instr) != before &&
         !has_parts(instr);
}

/* The engine asks whether a thread that it has stopped may leave the code cache, and if not, lets
 * it run on and asks again; with `will_leave` it does. It may only before an instruction of the
 * program: our code in front of one would run twice, and where our code stands behind one, that
 * would. */
static bool on_translation(void *drcontext, bool will_leave, dr_restore_state_info_t *information) {
  const dr_fault_fragment_info_t *fragment = &information->fragment_info;
  struct thread *thread = thread_of(drcontext);
  /* What a thread asks of itself are faults, which come to signals.c. */
  if (thread == NULL || drcontext == dr_get_current_drcontext())
    return true;
  bool is_in_cache = fragment->cache_start_pc != NULL && information->raw_mcontext_valid;
  uint64_t pc = (uint64_t)(ptr_uint_t)information->mcontext->pc;
  thread->stopped_at = is_in_cache && !will_leave ? pc : 0;
  if (is_in_cache && will_leave)
    interrupt_block(thread, pc);
  if (!is_in_cache || will_leave)
    return true;
  /* In another thread's stead the buffer cannot be emptied. */
  return fragment->ilist != NULL && *thread->position + INTERRUPTION_WORDS <= thread->guard &&
         is_at_program_instruction(drcontext, fragment->ilist, fragment->cache_start_pc,
                                   information->raw_mcontext->pc);
}

void interruptions_init(void) {
  bool is_ready = drmgr_register_restore_state_ex_event(on_translation);
  DR_ASSERT_MSG(is_ready, "the engine's translations cannot be followed");
}

void interruptions_exit(void) { drmgr_unregister_restore_state_ex_event(on_translation); }
