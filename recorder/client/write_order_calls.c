/* SPDX-License-Identifier: Apache-2.0 */
#include "write_order_calls.h"

#include "threads.h"
#include "write_order.h"

static void before(uint32_t id, uint32_t instruction, bool may_hold_lock) {
  write_order_before(thread_of_caller(), id, instruction, may_hold_lock);
}

static bool is_flush(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return opcode == OP_clflush || opcode == OP_clflushopt || opcode == OP_clwb;
}

bool write_order_calls_end_block_behind(instr_t *instr) {
  return write_order_is_kept && (instr_writes_memory(instr) || is_flush(instr));
}

void write_order_call_insert(void *drcontext, instrlist_t *block, instr_t *instr,
                             const struct block_plan *plan) {
  if (!write_order_has(plan->id, plan->next_instruction))
    return;
  /* Only behind ordinary instructions is there a call that gives the lock back. */
  bool may_hold_lock = !instr_is_call(instr);
  dr_insert_clean_call(
      drcontext, block, instr, (void *)before, false, 3, OPND_CREATE_INT32((int)plan->id),
      OPND_CREATE_INT32((int)plan->next_instruction), OPND_CREATE_INT32(may_hold_lock));
}
