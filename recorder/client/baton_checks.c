/* SPDX-License-Identifier: Apache-2.0 */
#include "baton_checks.h"

#include "drmgr.h"
#include "drreg.h"

#include "baton.h"
#include "block_plan.h"
#include "region_checks.h"
#include "region_of_interest.h"
#include "threads.h"

#include <stddef.h>

#define FUNCTIONS_MAX 256u

static app_pc function[FUNCTIONS_MAX];
static uint32_t functions;

void baton_checks_meet_at(app_pc start) {
  if (functions < FUNCTIONS_MAX)
    function[functions++] = start;
}

static bool is_function(app_pc pc) {
  for (uint32_t i = 0; i < functions; i++) {
    if (function[i] == pc)
      return true;
  }
  return false;
}

static bool is_pause(instr_t *instr) { return instr_get_opcode(instr) == OP_pause; }

/* What others see as one step. */
bool baton_checks_is_atomic(instr_t *instr) {
  return (instr_get_prefix_flag(instr, PREFIX_LOCK) || instr_get_opcode(instr) == OP_xchg) &&
         instr_writes_memory(instr);
}

/* Called before a block, in which nothing has been done yet. */
static void look(app_pc pc, int lead) {
  void *drcontext = dr_get_current_drcontext();
  struct thread *thread = thread_of(drcontext);
  if (!baton_has(thread))
    return;
  bool is_away = baton_is_away(thread), was_outside = region_is_outside;
  if (!is_away)
    region_of_interest_look(thread);
  bool is_due = is_away || baton_is_due(thread, (enum baton_lead)lead);
  if (!is_due && region_is_outside == was_outside)
    return;
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_ALL};
  dr_get_mcontext(drcontext, &context);
  context.pc = pc;
  if (region_is_outside != was_outside)
    region_checks_renew_code();
  if (is_away)
    baton_come_back(thread, false, &context);
  else if (is_due)
    baton_hand_over(thread, &context);
  /* The code may have been made anew meanwhile. */
  dr_redirect_execution(&context);
}

static bool may_go_back(instr_t *last, app_pc start) {
  if (!instr_is_cti(last))
    return false;
  opnd_t target = instr_get_target(last);
  return !opnd_is_pc(target) || opnd_get_pc(target) <= instr_get_app_pc(last);
}

/* What the look takes of the program's registers is back behind it: what wraps functions comes
 * next, and sees values that the program will not read, such as results. */
static void insert_restore(void *drcontext, instrlist_t *block, instr_t *where, bool has_flags) {
  dr_restore_reg(drcontext, block, where, DR_REG_XCX, SPILL_SLOT_2);
  if (!has_flags)
    return;
  dr_restore_arith_flags_from_xax(drcontext, block, where);
  dr_restore_reg(drcontext, block, where, DR_REG_XAX, SPILL_SLOT_3);
}

static void insert_look(void *drcontext, instrlist_t *block, instr_t *where, app_pc pc,
                        size_t limit, enum baton_lead lead) {
  instr_t *is_within = INSTR_CREATE_label(drcontext), *end = INSTR_CREATE_label(drcontext);
  bool is_dead = false;
  bool has_flags = drreg_are_aflags_dead(drcontext, where, &is_dead) != DRREG_SUCCESS || !is_dead;
  if (has_flags) {
    dr_save_reg(drcontext, block, where, DR_REG_XAX, SPILL_SLOT_3);
    dr_save_arith_flags_to_xax(drcontext, block, where);
  }
  dr_save_reg(drcontext, block, where, DR_REG_XCX, SPILL_SLOT_2);
  dr_insert_read_raw_tls(drcontext, block, where, position_tls_segment, position_tls_offset,
                         DR_REG_XCX);
  opnd_t at =
      opnd_create_far_base_disp(position_tls_segment, DR_REG_NULL, DR_REG_NULL, 0,
                                (int)(position_tls_offset + sizeof(uint64_t *) + limit), OPSZ_8);
  instrlist_meta_preinsert(block, where,
                           INSTR_CREATE_cmp(drcontext, opnd_create_reg(DR_REG_XCX), at));
  instrlist_meta_preinsert(block, where,
                           INSTR_CREATE_jcc(drcontext, OP_jbe, opnd_create_instr(is_within)));
  insert_restore(drcontext, block, where, has_flags);
  dr_insert_clean_call(drcontext, block, where, (void *)look, false, 2, OPND_CREATE_INTPTR(pc),
                       OPND_CREATE_INT32((int)lead));
  instrlist_meta_preinsert(block, where, INSTR_CREATE_jmp(drcontext, opnd_create_instr(end)));
  instrlist_meta_preinsert(block, where, is_within);
  insert_restore(drcontext, block, where, has_flags);
  instrlist_meta_preinsert(block, where, end);
}

/* Before what threads meet at a block ends. */
static dr_emit_flags_t on_block(void *drcontext, void *tag, instrlist_t *block, bool for_trace,
                                bool translating) {
  (void)tag, (void)for_trace, (void)translating;
  instr_t *instr = instrlist_first_app(block);
  for (instr = instr == NULL ? NULL : instr_get_next_app(instr); instr != NULL;
       instr = instr_get_next_app(instr)) {
    if (baton_checks_is_atomic(instr) || is_pause(instr))
      break;
  }
  block_plan_cut(drcontext, block, instr);
  return DR_EMIT_DEFAULT;
}

static dr_emit_flags_t on_insertion(void *drcontext, void *tag, instrlist_t *block, instr_t *instr,
                                    bool for_trace, bool translating, void *user_data) {
  (void)tag, (void)for_trace, (void)translating, (void)user_data;
  if (!drmgr_is_first_nonlabel_instr(drcontext, instr))
    return DR_EMIT_DEFAULT;
  instr_t *first = instrlist_first_app(block);
  if (first == NULL)
    return DR_EMIT_DEFAULT;
  app_pc pc = instr_get_app_pc(first);
  if (is_pause(first))
    insert_look(drcontext, block, instr, pc, offsetof(struct baton_limits, pause), LEAD_NONE);
  else if (baton_checks_is_atomic(first) || is_function(pc))
    insert_look(drcontext, block, instr, pc, offsetof(struct baton_limits, meeting), LEAD_MEETING);
  else if (may_go_back(instrlist_last_app(block), pc))
    insert_look(drcontext, block, instr, pc, offsetof(struct baton_limits, quantum), LEAD_QUANTUM);
  return DR_EMIT_DEFAULT;
}

void baton_checks_init(void) {
  if (!baton_is_passed)
    return;
  drmgr_priority_t priority = {sizeof(priority), "fencepost.baton", NULL, NULL, -1000};
  bool is_ready = drmgr_register_bb_app2app_event(on_block, NULL) &&
                  drmgr_register_bb_instrumentation_event(NULL, on_insertion, &priority);
  DR_ASSERT_MSG(is_ready, "the engine's extensions could not be started");
}

void baton_checks_exit(void) {
  if (!baton_is_passed)
    return;
  drmgr_unregister_bb_app2app_event(on_block);
  drmgr_unregister_bb_insertion_event(on_insertion);
}
