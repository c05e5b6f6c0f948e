/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupted_execution.h"

#include "code_table.h"
#include "fields.h"
#include "raw_words.h"
#include "record_format.h"
#include "recording.h"
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
  if (!thread->is_recorded)
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
