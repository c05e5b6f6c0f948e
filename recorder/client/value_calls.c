/* SPDX-License-Identifier: Apache-2.0 */
#include "value_calls.h"

#include "masked_stores.h"
#include "threads.h"
#include "values.h"

/* A place as one argument. */
static uint64_t pack(const struct write_place *place) {
  return (uint64_t)place->block << 32 | (uint32_t)place->slot << 16 | place->write;
}

static struct write_place unpack(uint64_t packed) {
  return (struct write_place){.block = (uint32_t)(packed >> 32),
                              .slot = (uint16_t)(packed >> 16),
                              .write = (uint16_t)packed};
}

static void after_write(uint64_t packed) {
  struct write_place place = unpack(packed);
  values_after_write(thread_of_caller(), &place, true);
}

/* Whether a write that depends on the processor's state happened at all. */
static bool happened(instr_t *instr, const dr_mcontext_t *context) {
  int opcode = instr_get_opcode(instr);
  if (opcode == OP_cmpxchg || opcode == OP_cmpxchg8b || opcode == OP_cmpxchg16b)
    return (context->xflags & EFLAGS_ZF) != 0;
  return masked_store_writes(instr, context);
}

/* Likewise, where the write at `pc` may not have happened. */
static void after_conditional_write(uint64_t packed, app_pc pc) {
  void *drcontext = dr_get_current_drcontext();
  struct write_place place = unpack(packed);
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_ALL};
  dr_get_mcontext(drcontext, &context);
  instr_t instr;
  instr_init(drcontext, &instr);
  bool has_happened = decode(drcontext, pc, &instr) != NULL && happened(&instr, &context);
  instr_free(drcontext, &instr);
  values_after_write(thread_of(drcontext), &place, has_happened);
}

/* Before a call at whose end the return address will stand on the stack. */
static void before_call_instruction(uint64_t packed, uint64_t return_address) {
  struct write_place place = unpack(packed);
  values_before_call(thread_of_caller(), &place, return_address);
}

static bool is_conditional(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return opcode == OP_cmpxchg || opcode == OP_cmpxchg8b || opcode == OP_cmpxchg16b ||
         instr_is_masked_store(instr);
}

bool value_calls_end_block_behind(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return opcode == OP_rep_movs || opcode == OP_rep_stos;
}

bool value_call_insert(void *drcontext, instrlist_t *block, instr_t *instr, instr_t *behind,
                       const struct block_plan *plan) {
  struct write_place found;
  if (!values_find_write(plan->id, plan->next_instruction, value_calls_end_block_behind(instr),
                         &found))
    return false;
  uint64_t place = pack(&found);
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
