/* SPDX-License-Identifier: Apache-2.0 */
#include "instrument.h"

#include "dr_api.h"

#include "drmgr.h"
#include "drreg.h"
#include "drutil.h"
#include "drvector.h"

#include "block_plan.h"
#include "recording.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "threads.h"
#include "value_calls.h"
#include "value_queue.h"
#include "vector_elements.h"

#include <signal.h>

#define WORD_BYTES 8

/* Once the start of the execution is written. */
static int word_offset(const struct block_plan *plan, uint32_t word) {
  /* The position has already been advanced over the whole execution. */
  return ((int)word - (int)plan->raw_words) * WORD_BYTES;
}

/* Inserts a store that may meet the guard page: it names the instruction it stands for, so that the
 * engine can tell the program's state there. */
static void insert_store(instrlist_t *block, instr_t *where, instr_t *store, app_pc pc) {
  instr_set_translation(store, pc);
  instrlist_meta_preinsert(block, where, store);
}

static void insert_read_position(void *drcontext, instrlist_t *block, instr_t *where,
                                 reg_id_t reg) {
  dr_insert_read_raw_tls(drcontext, block, where, position_tls_segment, position_tls_offset, reg);
}

/* Fills `allowed` with the general-purpose registers that are not in the set `named`. */
static void allow_unnamed(drvector_t *allowed, register_set named) {
  drreg_init_and_fill_vector(allowed, true);
  for (reg_id_t reg = DR_REG_START_GPR; reg <= DR_REG_STOP_GPR; reg++) {
    if ((named & register_set_of(reg)) != 0)
      drreg_set_vector_entry(allowed, reg, false);
  }
}

static reg_id_t reserve(void *drcontext, instrlist_t *block, instr_t *where, register_set named) {
  drvector_t allowed;
  reg_id_t reg;
  allow_unnamed(&allowed, named);
  drreg_status_t status = drreg_reserve_register(drcontext, block, where, &allowed, &reg);
  drvector_delete(&allowed);
  return status == DRREG_SUCCESS ? reg : DR_REG_NULL;
}

static reg_id_t reserve_or_fail(void *drcontext, instrlist_t *block, instr_t *where,
                                register_set named) {
  reg_id_t reg = reserve(drcontext, block, where, named);
  DR_ASSERT_MSG(reg != DR_REG_NULL, "no register left for the recorder");
  return reg;
}

static void unreserve(void *drcontext, instrlist_t *block, instr_t *where, reg_id_t reg) {
  drreg_unreserve_register(drcontext, block, where, reg);
}

static opnd_t word_operand(const struct block_plan *plan, reg_id_t position, uint32_t word) {
  return opnd_create_base_disp(position, DR_REG_NULL, 0, word_offset(plan, word), OPSZ_8);
}

static void insert_execution_start(void *drcontext, instrlist_t *block, instr_t *where,
                                   struct block_plan *plan) {
  reg_id_t reg = reserve(drcontext, block, where, plan->used_registers);
  plan->position_register = reg;
  if (reg == DR_REG_NULL)
    reg = reserve_or_fail(drcontext, block, where, 0);
  int bytes = plan->raw_words * WORD_BYTES;
  app_pc pc = instr_get_app_pc(where);
  insert_read_position(drcontext, block, where, reg);
  /* First, so that whole records stand before the position at any time. */
  insert_store(block, where,
               INSTR_CREATE_mov_st(drcontext, opnd_create_base_disp(reg, DR_REG_NULL, 0, 0, OPSZ_8),
                                   OPND_CREATE_INT32((int)plan->id)),
               pc);
  instrlist_meta_preinsert(
      block, where,
      INSTR_CREATE_lea(drcontext, opnd_create_reg(reg),
                       opnd_create_base_disp(reg, DR_REG_NULL, 0, bytes, OPSZ_lea)));
  dr_insert_write_raw_tls(drcontext, block, where, position_tls_segment, position_tls_offset, reg);
  if (values_are_recorded)
    insert_store(
        block, where,
        INSTR_CREATE_mov_st(drcontext, word_operand(plan, reg, VALUES_WORD), OPND_CREATE_INT32(0)),
        pc);
  if (plan->position_register == DR_REG_NULL)
    unreserve(drcontext, block, where, reg);
}

/* Outside of the region: the position goes on by a word for each instruction. */
static void insert_count(void *drcontext, instrlist_t *block, instr_t *where,
                         const struct block_plan *plan) {
  reg_id_t reg = reserve_or_fail(drcontext, block, where, 0);
  insert_read_position(drcontext, block, where, reg);
  instrlist_meta_preinsert(
      block, where,
      INSTR_CREATE_lea(
          drcontext, opnd_create_reg(reg),
          opnd_create_base_disp(reg, DR_REG_NULL, 0, plan->instructions * WORD_BYTES, OPSZ_lea)));
  dr_insert_write_raw_tls(drcontext, block, where, position_tls_segment, position_tls_offset, reg);
  unreserve(drcontext, block, where, reg);
}

static void insert_register(void *drcontext, instrlist_t *block, instr_t *where,
                            const struct block_plan *plan, const struct raw_source *source,
                            reg_id_t position) {
  opnd_t reg = opnd_create_reg(source->reg);
  drreg_restore_app_values(drcontext, block, where, reg, NULL);
  insert_store(block, where,
               INSTR_CREATE_mov_st(drcontext, word_operand(plan, position, source->word), reg),
               instr_get_app_pc(where));
}

static opnd_t sized(opnd_t operand, opnd_size_t size) {
  opnd_set_size(&operand, size);
  return operand;
}

/* The low eight bytes where it has more. */
static void insert_memory(void *drcontext, instrlist_t *block, instr_t *where,
                          const struct block_plan *plan, const struct raw_source *source,
                          reg_id_t position) {
  register_set named = registers_of_operand(source->operand) | register_set_of(position);
  reg_id_t value = reserve_or_fail(drcontext, block, where, named);
  opnd_t to = opnd_create_reg(value), from = source->operand;
  drreg_restore_app_values(drcontext, block, where, from, NULL);
  switch (opnd_size_in_bytes(opnd_get_size(from))) {
  case 1:
    instrlist_meta_preinsert(
        block, where,
        INSTR_XL8(INSTR_CREATE_movzx(drcontext, to, sized(from, OPSZ_1)), instr_get_app_pc(where)));
    break;
  case 2:
    instrlist_meta_preinsert(
        block, where,
        INSTR_XL8(INSTR_CREATE_movzx(drcontext, to, sized(from, OPSZ_2)), instr_get_app_pc(where)));
    break;
  case 4:
    instrlist_meta_preinsert(
        block, where,
        INSTR_XL8(INSTR_CREATE_mov_ld(drcontext, opnd_create_reg(reg_64_to_32(value)),
                                      sized(from, OPSZ_4)),
                  instr_get_app_pc(where)));
    break;
  default:
    instrlist_meta_preinsert(block, where,
                             INSTR_XL8(INSTR_CREATE_mov_ld(drcontext, to, sized(from, OPSZ_8)),
                                       instr_get_app_pc(where)));
    break;
  }
  insert_store(block, where,
               INSTR_CREATE_mov_st(drcontext, word_operand(plan, position, source->word), to),
               instr_get_app_pc(where));
  unreserve(drcontext, block, where, value);
}

static void insert_address(void *drcontext, instrlist_t *block, instr_t *where,
                           const struct block_plan *plan, const struct raw_source *source,
                           reg_id_t position) {
  register_set named = registers_of_operand(source->operand) | register_set_of(position);
  reg_id_t address = reserve_or_fail(drcontext, block, where, named);
  /* Only segments other than the flat ones need a second register. */
  reg_id_t scratch = DR_REG_NULL;
  if (!opnd_is_base_disp(source->operand) || opnd_get_segment(source->operand) != DR_REG_NULL)
    scratch = reserve_or_fail(drcontext, block, where, named);
  drreg_restore_app_values(drcontext, block, where, source->operand, NULL);
  bool is_inserted = drutil_insert_get_mem_addr(drcontext, block, where, source->operand, address,
                                                scratch == DR_REG_NULL ? address : scratch);
  DR_ASSERT_MSG(is_inserted, "an operand's address could not be computed");
  insert_store(block, where,
               INSTR_CREATE_mov_st(drcontext, word_operand(plan, position, source->word),
                                   opnd_create_reg(address)),
               instr_get_app_pc(where));
  if (scratch != DR_REG_NULL)
    unreserve(drcontext, block, where, scratch);
  unreserve(drcontext, block, where, address);
}

/* After `instr`. Where it ends the block, the position is no longer held: drreg has given all
 * registers back before it. Then one is borrowed, which is not the one that is stored. */
static void insert_register_after(void *drcontext, instrlist_t *block, instr_t *instr,
                                  const struct block_plan *plan, const struct raw_source *source) {
  instr_t *end = instr_get_next(instr);
  if (plan->position_register != DR_REG_NULL && !drmgr_is_last_instr(drcontext, instr)) {
    opnd_t word = word_operand(plan, plan->position_register, source->word);
    insert_store(block, end, INSTR_CREATE_mov_st(drcontext, word, opnd_create_reg(source->reg)),
                 instr_get_app_pc(instr));
    return;
  }
  reg_id_t borrowed = source->reg == DR_REG_XDX ? DR_REG_XBX : DR_REG_XDX;
  dr_save_reg(drcontext, block, end, borrowed, SPILL_SLOT_1);
  insert_read_position(drcontext, block, end, borrowed);
  insert_store(block, end,
               INSTR_CREATE_mov_st(drcontext, word_operand(plan, borrowed, source->word),
                                   opnd_create_reg(source->reg)),
               instr_get_app_pc(instr));
  dr_restore_reg(drcontext, block, end, borrowed, SPILL_SLOT_1);
}

/* Called by instrumented code before a gather or scatter at `pc`, whose elements' words begin
 * `words_back` before the position. */
static void write_elements(app_pc pc, ptr_uint_t words_back) {
  void *drcontext = dr_get_current_drcontext();
  struct thread *thread = thread_of(drcontext);
  if (*thread->position > thread->guard)
    thread_drain(thread);
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_ALL};
  dr_get_mcontext(drcontext, &context);
  instr_t instr;
  instr_init(drcontext, &instr);
  struct vector_elements elements;
  if (decode(drcontext, pc, &instr) != NULL && vector_elements_describe(&instr, pc, &elements))
    vector_elements_addresses(&elements, &context, *thread->position - words_back);
  instr_free(drcontext, &instr);
}

static void insert_elements(void *drcontext, instrlist_t *block, instr_t *where,
                            const struct block_plan *plan, const struct raw_source *source) {
  dr_insert_clean_call_ex(drcontext, block, where, (void *)write_elements,
                          DR_CLEANCALL_READS_APP_CONTEXT, 2,
                          OPND_CREATE_INTPTR(instr_get_app_pc(where)),
                          OPND_CREATE_INTPTR(plan->raw_words - source->word));
  /* The call may have emptied the buffer. */
  if (plan->position_register != DR_REG_NULL)
    insert_read_position(drcontext, block, where, plan->position_register);
}

static void insert_source(void *drcontext, instrlist_t *block, instr_t *where,
                          struct block_plan *plan, const struct raw_source *source) {
  if (source->how == RAW_REGISTER_AFTER) {
    insert_register_after(drcontext, block, where, plan, source);
    return;
  }
  if (source->how == RAW_ELEMENTS) {
    insert_elements(drcontext, block, where, plan, source);
    return;
  }
  reg_id_t position = plan->position_register;
  if (position == DR_REG_NULL) {
    register_set named = source->how == RAW_REGISTER ? register_set_of(source->reg)
                                                     : registers_of_operand(source->operand);
    position = reserve_or_fail(drcontext, block, where, named);
    insert_read_position(drcontext, block, where, position);
  }
  if (source->how == RAW_REGISTER)
    insert_register(drcontext, block, where, plan, source, position);
  else if (source->how == RAW_MEMORY)
    insert_memory(drcontext, block, where, plan, source, position);
  else
    insert_address(drcontext, block, where, plan, source, position);
  if (plan->position_register == DR_REG_NULL)
    unreserve(drcontext, block, where, position);
}

static dr_emit_flags_t on_analysis(void *drcontext, void *tag, instrlist_t *block, bool for_trace,
                                   bool translating, void **user_data) {
  (void)tag, (void)for_trace, (void)translating;
  *user_data = block_plan_create(drcontext, block);
  return DR_EMIT_DEFAULT;
}

/* Whether the register that holds the position is needed behind the instruction that `instr` is. */
static bool needs_position_later(void *drcontext, const struct block_plan *plan, instr_t *instr) {
  if (drmgr_is_last_instr(drcontext, instr))
    return false;
  if (plan->next_source < plan->sources)
    return true;
  const struct raw_source *last = plan->sources == 0 ? NULL : &plan->source[plan->sources - 1];
  return last != NULL && last->how == RAW_REGISTER_AFTER &&
         last->instruction == plan->next_instruction;
}

static void insert_values(void *drcontext, instrlist_t *block, instr_t *instr, instr_t *behind,
                          const struct block_plan *plan) {
  if (!value_call_insert(drcontext, block, instr, behind, plan))
    return;
  /* The call may move the position. */
  if (plan->position_register != DR_REG_NULL && needs_position_later(drcontext, plan, instr))
    insert_read_position(drcontext, block, behind, plan->position_register);
}

/* What stands behind a write of any length starts a block of its own. */
static dr_emit_flags_t on_block(void *drcontext, void *tag, instrlist_t *block, bool for_trace,
                                bool translating) {
  (void)tag, (void)for_trace, (void)translating;
  instr_t *instr = instrlist_first_app(block);
  while (instr != NULL && !value_calls_end_block_behind(instr))
    instr = instr_get_next_app(instr);
  if (instr != NULL)
    block_plan_cut(drcontext, block, instr_get_next(instr));
  return DR_EMIT_DEFAULT;
}

static dr_emit_flags_t on_insertion(void *drcontext, void *tag, instrlist_t *block, instr_t *instr,
                                    bool for_trace, bool translating, void *user_data) {
  (void)tag, (void)for_trace, (void)translating;
  struct block_plan *plan = user_data;
  if (instr_is_app(instr) && plan->id != 0) {
    instr_t *behind = instr_get_next(instr);
    if (plan->next_instruction == 0)
      insert_execution_start(drcontext, block, instr, plan);
    while (plan->next_source < plan->sources &&
           plan->source[plan->next_source].instruction == plan->next_instruction)
      insert_source(drcontext, block, instr, plan, &plan->source[plan->next_source++]);
    if (values_are_recorded)
      insert_values(drcontext, block, instr, behind, plan);
    if (plan->position_register != DR_REG_NULL && !needs_position_later(drcontext, plan, instr)) {
      unreserve(drcontext, block, instr, plan->position_register);
      plan->position_register = DR_REG_NULL;
    }
    plan->next_instruction++;
  } else if (instr_is_app(instr) && region_is_outside && plan->next_instruction++ == 0) {
    insert_count(drcontext, block, instr, plan);
  }
  if (drmgr_is_last_instr(drcontext, instr))
    block_plan_free(drcontext, plan);
  return DR_EMIT_DEFAULT;
}

bool instrument_handle_fault(void *drcontext, dr_siginfo_t *information) {
  struct thread *thread = thread_of(drcontext);
  if (information->sig != SIGSEGV || !information->raw_mcontext_valid || thread == NULL)
    return false;
  uint64_t *address = (uint64_t *)information->access_address;
  if (address < thread->guard || address >= thread->guard + EXECUTION_WORDS_MAX)
    return false;
  instr_t store;
  instr_init(drcontext, &store);
  decode(drcontext, information->raw_mcontext->pc, &store);
  opnd_t target = instr_get_dst(&store, 0);
  reg_id_t reg = opnd_is_base_disp(target) ? opnd_get_base(target) : DR_REG_NULL;
  instr_free(drcontext, &store);
  if (reg == DR_REG_NULL ||
      reg_get_value(reg, information->raw_mcontext) != (reg_t)*thread->position)
    return false;
  thread_drain(thread);
  reg_set_value(reg, information->raw_mcontext, (reg_t)*thread->position);
  return true;
}

void instrument_init(void) {
  drreg_options_t options = {.struct_size = sizeof(options), .num_spill_slots = 4};
  bool is_ready = drreg_init(&options) == DRREG_SUCCESS && drutil_init();
  block_plans_init();
  /* Behind the wrapping of functions, whose calls must come before a function's first block counts.
   */
  drmgr_priority_t priority = {sizeof(priority), "fencepost.trace", NULL, NULL, 1000};
  is_ready =
      is_ready && drmgr_register_bb_instrumentation_event(on_analysis, on_insertion, &priority);
  if (values_are_recorded)
    is_ready = is_ready && drmgr_register_bb_app2app_event(on_block, NULL);
  DR_ASSERT_MSG(is_ready, "the engine's extensions could not be started");
}

void instrument_exit(void) {
  drmgr_unregister_bb_instrumentation_event(on_analysis);
  if (values_are_recorded)
    drmgr_unregister_bb_app2app_event(on_block);
  block_plans_exit();
  drutil_exit();
  drreg_exit();
}
