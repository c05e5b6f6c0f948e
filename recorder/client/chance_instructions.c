/* SPDX-License-Identifier: Apache-2.0 */
#include "chance_instructions.h"

#include "dr_api.h"

#include "drmgr.h"

#include "baton.h"
#include "block_plan.h"
#include "random_bytes.h"
#include "recording.h"
#include "threads.h"
#include "virtual_time.h"

static bool depends_on_chance(int opcode) {
  switch (opcode) {
  case OP_rdtsc:
  case OP_rdtscp:
    return recording.area->real_time == 0;
  case OP_rdrand:
  case OP_rdseed:
    return true;
  default:
    return false;
  }
}

static void put_time_stamp(struct thread *thread, dr_mcontext_t *context, int opcode) {
  thread_drain(thread);
  uint64_t stamp = virtual_time_stamp(thread);
  context->xax = (uint32_t)stamp;
  context->xdx = stamp >> 32;
  if (opcode == OP_rdtscp)
    context->xcx = 0;
}

static void put_random_word(dr_mcontext_t *context, reg_id_t reg) {
  uint64_t word = random_word();
  reg_id_t whole = reg_to_pointer_sized(reg);
  if (reg_is_32bit(reg))
    word = (uint32_t)word;
  else if (!reg_is_64bit(reg))
    word = (reg_get_value(whole, context) & ~(uint64_t)0xffff) | (uint16_t)word;
  reg_set_value(whole, context, word);
}

/* Called behind the instruction, which has had its own result. */
static void put_result(int opcode, reg_id_t reg) {
  void *drcontext = dr_get_current_drcontext();
  struct thread *thread = thread_of(drcontext);
  if (!baton_has(thread))
    return;
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_INTEGER | DR_MC_CONTROL};
  dr_get_mcontext(drcontext, &context);
  if (opcode == OP_rdtsc || opcode == OP_rdtscp) {
    put_time_stamp(thread, &context, opcode);
  } else {
    put_random_word(&context, reg);
    context.xflags |= EFLAGS_CF; /* there was one */
  }
  dr_set_mcontext(drcontext, &context);
}

/* Such an instruction is a block of its own, so that behind it the thread's clock can be read. */
static dr_emit_flags_t on_block(void *drcontext, void *tag, instrlist_t *block, bool for_trace,
                                bool translating) {
  (void)tag, (void)for_trace, (void)translating;
  instr_t *instr = instrlist_first_app(block);
  if (instr == NULL)
    return DR_EMIT_DEFAULT;
  if (depends_on_chance(instr_get_opcode(instr))) {
    instr = instr_get_next_app(instr);
  } else {
    while (instr != NULL && !depends_on_chance(instr_get_opcode(instr)))
      instr = instr_get_next_app(instr);
  }
  block_plan_cut(drcontext, block, instr);
  return DR_EMIT_DEFAULT;
}

static dr_emit_flags_t on_insertion(void *drcontext, void *tag, instrlist_t *block, instr_t *instr,
                                    bool for_trace, bool translating, void *user_data) {
  (void)tag, (void)for_trace, (void)translating, (void)user_data;
  if (!instr_is_app(instr) || !depends_on_chance(instr_get_opcode(instr)))
    return DR_EMIT_DEFAULT;
  int opcode = instr_get_opcode(instr);
  bool is_stamp = opcode == OP_rdtsc || opcode == OP_rdtscp;
  dr_insert_clean_call_ex(drcontext, block, instr_get_next(instr), (void *)put_result,
                          DR_CLEANCALL_READS_APP_CONTEXT | DR_CLEANCALL_WRITES_APP_CONTEXT, 2,
                          OPND_CREATE_INT32(opcode),
                          OPND_CREATE_INT32(is_stamp ? 0 : opnd_get_reg(instr_get_dst(instr, 0))));
  return DR_EMIT_DEFAULT;
}

void chance_instructions_init(void) {
  if (!baton_is_passed)
    return;
  drmgr_priority_t priority = {sizeof(priority), "fencepost.chance", NULL, NULL, -1001};
  bool is_ready = drmgr_register_bb_app2app_event(on_block, NULL) &&
                  drmgr_register_bb_instrumentation_event(NULL, on_insertion, &priority);
  DR_ASSERT_MSG(is_ready, "the engine's extensions could not be started");
}

void chance_instructions_exit(void) {
  if (!baton_is_passed)
    return;
  drmgr_unregister_bb_app2app_event(on_block);
  drmgr_unregister_bb_insertion_event(on_insertion);
}
