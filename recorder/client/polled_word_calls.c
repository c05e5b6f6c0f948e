/* SPDX-License-Identifier: Apache-2.0 */
#include "polled_word_calls.h"

#include "drmgr.h"
#include "drreg.h"
#include "drutil.h"

#include "code_walk.h"
#include "exchanged_values.h"
#include "polled_words.h"
#include "selected_memory.h"
#include "threads.h"

static void before_store(uint32_t id, uint32_t instruction, uint64_t pc) {
  polled_words_before_store(thread_of_caller(), id, instruction, pc);
}

static void before_update(uint32_t id, uint32_t instruction, uint64_t pc) {
  polled_words_before_update(thread_of_caller(), id, instruction, pc);
}

static void after_update(uint32_t id) { polled_words_after_update(thread_of_caller(), id); }

static void after_store(void) { polled_words_end(thread_of_caller()); }

static void after_load(uint32_t id, uint32_t instruction) {
  polled_words_after_load(thread_of_caller(), id, instruction);
}

static bool is_known(instr_t *instr) {
  return polled_words_know((uint64_t)(ptr_uint_t)instr_get_app_pc(instr));
}

static bool is_far(opnd_t operand) {
  reg_id_t segment = opnd_is_base_disp(operand) ? opnd_get_segment(operand) : DR_REG_NULL;
  return segment == DR_SEG_FS || segment == DR_SEG_GS;
}

/* The operand by which an instruction may store to a word that others poll: of up to eight bytes
 * and from a general-purpose register. What others poll may lie in the thread's own frame. */
static bool find_store(instr_t *instr, opnd_t *operand) {
  int opcode = instr_get_opcode(instr);
  if (instr_is_cti(instr) || opcode == OP_push || opcode == OP_push_imm || opcode == OP_enter)
    return false;
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    opnd_t source = instr_get_src(instr, i);
    if (opnd_is_reg(source) && !reg_is_gpr(opnd_get_reg(source)))
      return false;
  }
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    *operand = instr_get_dst(instr, i);
    if (!opnd_is_memory_reference(*operand))
      continue;
    return opnd_size_in_bytes(opnd_get_size(*operand)) <= 8 && !is_far(*operand) &&
           !instr_is_rep_string_op(instr);
  }
  return false;
}

/* An exchange of which nobody uses what was read is a store with a fence. */
static bool is_update(void *drcontext, instr_t *instr) {
  return is_atomic_update(instr) && !exchange_is_store(drcontext, instr);
}

/* Jumps over what is inserted between these two unless the table has something in the place of
 * `operand`'s address. Needs no flags: only `jrcxz` can do without, and that only over a few bytes.
 */
struct unless {
  reg_id_t counter;
  instr_t *end;
};

static struct unless begin_unless_unpolled(void *drcontext, instrlist_t *block, instr_t *where,
                                           opnd_t operand) {
  struct unless unless = {DR_REG_NULL, INSTR_CREATE_label(drcontext)};
  drvector_t allowed;
  drreg_init_and_fill_vector(&allowed, false);
  drreg_set_vector_entry(&allowed, DR_REG_XCX, true);
  drreg_status_t status =
      drreg_reserve_register(drcontext, block, where, &allowed, &unless.counter);
  drvector_delete(&allowed);
  DR_ASSERT_MSG(status == DRREG_SUCCESS, "no register left to look a store up");
  drreg_restore_app_values(drcontext, block, where, operand, NULL);
  bool is_inserted =
      drutil_insert_get_mem_addr(drcontext, block, where, operand, unless.counter, unless.counter);
  DR_ASSERT_MSG(is_inserted, "an operand's address could not be computed");
  opnd_t low = opnd_create_reg(reg_resize_to_opsz(unless.counter, OPSZ_2));
  opnd_t counter = opnd_create_reg(reg_resize_to_opsz(unless.counter, OPSZ_4));
  instrlist_meta_preinsert(block, where, INSTR_CREATE_movzx(drcontext, counter, low));
  opnd_t entry = opnd_create_base_disp(unless.counter, DR_REG_NULL, 0,
                                       (int)(ptr_int_t)polled_words_filter(), OPSZ_1);
  instrlist_meta_preinsert(block, where, INSTR_CREATE_movzx(drcontext, counter, entry));
  instr_t *none = INSTR_CREATE_label(drcontext), *some = INSTR_CREATE_label(drcontext);
  instrlist_meta_preinsert(block, where, INSTR_CREATE_jecxz(drcontext, opnd_create_instr(none)));
  instrlist_meta_preinsert(block, where, INSTR_CREATE_jmp(drcontext, opnd_create_instr(some)));
  instrlist_meta_preinsert(block, where, none);
  instrlist_meta_preinsert(block, where,
                           INSTR_CREATE_jmp(drcontext, opnd_create_instr(unless.end)));
  instrlist_meta_preinsert(block, where, some);
  return unless;
}

static void end_unless_unpolled(void *drcontext, instrlist_t *block, instr_t *where,
                                const struct unless *unless) {
  instrlist_meta_preinsert(block, where, unless->end);
  drreg_unreserve_register(drcontext, block, where, unless->counter);
  /* Otherwise a call behind the instruction that looks at the program's registers (values.c) would
   * have the program's value restored there, too late for the instruction itself. */
  if (values_are_recorded)
    drreg_get_app_value(drcontext, block, where, unless->counter, unless->counter);
}

static void insert_call_before(void *drcontext, instrlist_t *block, instr_t *instr,
                               const struct block_plan *plan) {
  dr_insert_clean_call(drcontext, block, instr,
                       is_update(drcontext, instr) ? (void *)before_update : (void *)before_store,
                       false, 3, OPND_CREATE_INT32((int)plan->id),
                       OPND_CREATE_INT32((int)plan->next_instruction),
                       OPND_CREATE_INTPTR(instr_get_app_pc(instr)));
  /* It may have moved the position. */
  if (plan->position_register != DR_REG_NULL)
    dr_insert_read_raw_tls(drcontext, block, instr, position_tls_segment, position_tls_offset,
                           plan->position_register);
}

void polled_word_calls_insert_before(void *drcontext, instrlist_t *block, instr_t *instr,
                                     const struct block_plan *plan) {
  opnd_t operand;
  if (!find_store(instr, &operand))
    return;
  if (is_known(instr)) {
    insert_call_before(drcontext, block, instr, plan);
    return;
  }
  struct unless unless = begin_unless_unpolled(drcontext, block, instr, operand);
  insert_call_before(drcontext, block, instr, plan);
  end_unless_unpolled(drcontext, block, instr, &unless);
}

bool polled_word_calls_insert_behind(void *drcontext, instrlist_t *block, instr_t *instr,
                                     instr_t *behind, const struct block_plan *plan) {
  opnd_t operand;
  if (instr_is_cti(instr))
    return false;
  bool stores = find_store(instr, &operand);
  if (stores && is_update(drcontext, instr)) {
    dr_insert_clean_call(drcontext, block, behind, (void *)after_update, false, 1,
                         OPND_CREATE_INT32((int)plan->id));
    return true;
  }
  if (!is_known(instr))
    return false;
  if (stores) {
    dr_insert_clean_call(drcontext, block, behind, (void *)after_store, false, 0);
    return false;
  }
  dr_insert_clean_call(drcontext, block, behind, (void *)after_load, false, 2,
                       OPND_CREATE_INT32((int)plan->id),
                       OPND_CREATE_INT32((int)plan->next_instruction));
  return true;
}
