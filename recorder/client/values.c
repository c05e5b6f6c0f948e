/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include "code_table.h"
#include "kernel_writes.h"
#include "masked_stores.h"
#include "record_format.h"
#include "selected_memory.h"
#include "value_queue.h"

#include <string.h>

/* Where a write belongs: its block, its slot in it, and its number among the block's writes. */
static uint64_t pack_place(uint32_t block, uint32_t slot, uint32_t write) {
  return (uint64_t)block << 32 | slot << 16 | write;
}
static uint32_t place_block(uint64_t place) { return (uint32_t)(place >> 32); }
static uint32_t place_slot(uint64_t place) { return (uint32_t)place >> 16; }
static uint32_t place_write(uint64_t place) { return (uint32_t)place & 0xffff; }

static void keep_for_call(struct thread *thread, uint64_t address, uint64_t bytes) {
  for (uint32_t i = 0; i < thread->call_writes; i++) {
    if (thread->call_write[i].address == address && thread->call_write[i].bytes >= bytes)
      return;
  }
  if (thread->call_writes < CALL_WRITES_MAX)
    thread->call_write[thread->call_writes++] = (struct call_write){address, bytes};
}

void values_send_of_call(struct thread *thread) {
  uint32_t count = thread->call_writes;
  thread->call_writes = 0;
  for (uint32_t i = 0; i < count; i++)
    kernel_writes_send(thread, thread->call_write[i].address, thread->call_write[i].bytes);
}

/* Keeps the `bytes` at `from` as those that the write left at `address`. */
static void keep(struct thread *thread, const struct block *block, uint32_t write, uint64_t address,
                 const void *from, uint32_t bytes) {
  uint64_t start, end;
  if (bytes == 0 || !selected_memory_find(address, address + bytes, &start, &end))
    return;
  if (thread->call_depth > 0) {
    keep_for_call(thread, address, bytes);
    return;
  }
  if (!value_queue_has_room(&thread->values, bytes))
    thread_drain_before(thread, *thread->position - block->raw_words);
  uint64_t *word = *thread->position - block->raw_words + VALUES_WORD;
  uint8_t *data = value_queue_add(&thread->values, word, write, bytes);
  size_t read;
  if (!dr_safe_read(from, bytes, data, &read)) /* A mask let it reach over what is mapped. */
    memset(data + read, 0, bytes - read);
}

static uint64_t slot_value(const struct thread *thread, const struct block *block, uint32_t slot) {
  const uint64_t *words = *thread->position - block->raw_words;
  return words[block->slot[slot].raw] + (uint64_t)block->slot[slot].displacement;
}

/* A repeated string instruction ends its block: the execution is complete. */
static void keep_string(struct thread *thread, const struct block *block, uint32_t slot,
                        uint32_t write) {
  uint64_t from = slot_value(thread, block, slot), to = slot_value(thread, block, slot + 1);
  uint64_t element = block->slot[slot].bytes;
  uint64_t start = from < to ? from : to + element, bytes = from < to ? to - from : from - to;
  write_order_wrote(thread, block, start, bytes);
  if (bytes <= VALUE_BYTES_MAX)
    keep(thread, block, write, start, (const void *)(ptr_uint_t)start, (uint32_t)bytes);
  else if (thread->call_depth > 0)
    keep_for_call(thread, start, bytes);
  else
    kernel_writes_send(thread, start, bytes);
}

static void keep_writes(struct thread *thread, uint64_t place) {
  const struct block *block = code_table_get(place_block(place));
  uint32_t write = place_write(place), first = place_slot(place);
  uint16_t instruction = block->slot[first].instruction;
  for (uint32_t i = first; i < block->slots && block->slot[i].instruction == instruction; i++) {
    const struct slot *slot = &block->slot[i];
    if (slot->kind == SLOT_STRING_DESTINATION) {
      keep_string(thread, block, i, write);
      return;
    }
    if (!slot_writes(slot))
      continue;
    uint64_t address = slot_value(thread, block, i);
    if (slot->kind != SLOT_SCATTER || address != 0)
      keep(thread, block, write, address, (const void *)(ptr_uint_t)address, slot->bytes);
    write++;
  }
}

static void after_write(uint64_t place) {
  struct thread *thread = thread_of(dr_get_current_drcontext());
  write_order_end(thread);
  if (thread->is_recorded)
    keep_writes(thread, place);
}

/* Whether a write that depends on the processor's state happened at all. */
static bool happened(instr_t *instr, const dr_mcontext_t *context) {
  int opcode = instr_get_opcode(instr);
  if (opcode == OP_cmpxchg || opcode == OP_cmpxchg8b || opcode == OP_cmpxchg16b)
    return (context->xflags & EFLAGS_ZF) != 0;
  return masked_store_writes(instr, context);
}

/* Likewise, where the write at `pc` may not have happened. */
static void after_conditional_write(uint64_t place, app_pc pc) {
  void *drcontext = dr_get_current_drcontext();
  struct thread *thread = thread_of(drcontext);
  write_order_end(thread);
  if (!thread->is_recorded)
    return;
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_ALL};
  dr_get_mcontext(drcontext, &context);
  instr_t instr;
  instr_init(drcontext, &instr);
  if (decode(drcontext, pc, &instr) != NULL && happened(&instr, &context))
    keep_writes(thread, place);
  instr_free(drcontext, &instr);
}

/* Before a call at whose end the return address will stand on the stack. */
static void before_call_instruction(uint64_t place, uint64_t return_address) {
  struct thread *thread = thread_of(dr_get_current_drcontext());
  if (!thread->is_recorded)
    return;
  const struct block *block = code_table_get(place_block(place));
  uint32_t slot = place_slot(place);
  keep(thread, block, place_write(place), slot_value(thread, block, slot), &return_address,
       block->slot[slot].bytes);
}

static bool is_conditional(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return opcode == OP_cmpxchg || opcode == OP_cmpxchg8b || opcode == OP_cmpxchg16b ||
         instr_is_masked_store(instr);
}

static bool is_string_write(int opcode) { return opcode == OP_rep_movs || opcode == OP_rep_stos; }

bool values_end_block_behind(instr_t *instr) { return is_string_write(instr_get_opcode(instr)); }

/* The first slot of the current instruction that writes, and its number among the block's writes.
 */
static bool find_write(const struct block_plan *plan, instr_t *instr, uint64_t *place) {
  const struct block *block = code_table_get(plan->id);
  uint32_t write = 0;
  for (uint32_t i = 0; i < block->slots; i++) {
    const struct slot *slot = &block->slot[i];
    if (slot->instruction == plan->next_instruction) {
      bool is_string = slot->kind == SLOT_STRING_DESTINATION;
      if (is_string ? is_string_write(instr_get_opcode(instr)) : slot_writes(slot)) {
        *place = pack_place(plan->id, i, write);
        return true;
      }
    }
    if (slot->kind == SLOT_STRING_DESTINATION)
      i++;
    if (slot_writes(slot))
      write++;
  }
  return false;
}

bool values_insert(void *drcontext, instrlist_t *block, instr_t *instr, instr_t *behind,
                   const struct block_plan *plan) {
  uint64_t place;
  if (!find_write(plan, instr, &place))
    return false;
  app_pc pc = instr_get_app_pc(instr);
  if (instr_is_call(instr)) {
    dr_insert_clean_call(drcontext, block, instr, (void *)before_call_instruction, false, 2,
                         OPND_CREATE_INTPTR(place),
                         OPND_CREATE_INTPTR(pc + instr_length(drcontext, instr)));
  } else if (is_conditional(instr)) {
    dr_insert_clean_call_ex(drcontext, block, behind, (void *)after_conditional_write,
                            DR_CLEANCALL_READS_APP_CONTEXT, 2, OPND_CREATE_INTPTR(place),
                            OPND_CREATE_INTPTR(pc));
  } else {
    dr_insert_clean_call(drcontext, block, behind, (void *)after_write, false, 1,
                         OPND_CREATE_INTPTR(place));
  }
  return true;
}
