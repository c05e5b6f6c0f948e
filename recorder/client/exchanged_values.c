/* SPDX-License-Identifier: Apache-2.0 */
#include "exchanged_values.h"

#include "code_walk.h"
#include "register_set.h"

/* What is read by an exchange is used soon, or not at all. */
#define INSTRUCTIONS_MAX 12u
#define BRANCHES_MAX 3u

/* Registers that a called function may have as arguments. */
static register_set arguments(void) {
  return register_set_of(DR_REG_XDI) | register_set_of(DR_REG_XSI) | register_set_of(DR_REG_XDX) |
         register_set_of(DR_REG_XCX) | register_set_of(DR_REG_R8) | register_set_of(DR_REG_R9);
}

/* Whether the code from `pc` on uses the register's value. */
static bool is_used(struct code_walk *walk, app_pc pc, register_set reg, uint32_t branches) {
  for (uint32_t i = 0; i < INSTRUCTIONS_MAX; i++) {
    if (!code_walk_decode(walk, pc))
      return true;
    instr_t *instr = &walk->instr;
    app_pc next = walk->next;
    if (instr_is_return(instr))
      return reg == register_set_of(DR_REG_XAX);
    if (instr_is_call(instr))
      return (reg & arguments()) != 0;
    if ((registers_read(instr) & reg) != 0 && !instr_is_cti(instr))
      return true;
    if (instr_is_ubr(instr)) {
      next = instr_get_branch_target_pc(instr);
    } else if (instr_is_cbr(instr)) {
      app_pc target = instr_get_branch_target_pc(instr);
      if (branches == BRANCHES_MAX)
        return false;
      return is_used(walk, target, reg, branches + 1) || is_used(walk, next, reg, branches + 1);
    } else if (instr_is_cti(instr)) {
      return true;
    }
    if ((registers_written(instr) & reg) != 0)
      return false;
    pc = next;
  }
  return false;
}

bool exchange_is_store(void *drcontext, instr_t *instr) {
  if (instr_get_opcode(instr) != OP_xchg)
    return false;
  opnd_t one = instr_get_dst(instr, 0), other = instr_get_dst(instr, 1);
  if (!opnd_is_reg(one) && !opnd_is_reg(other))
    return false;
  reg_id_t reg = opnd_get_reg(opnd_is_reg(one) ? one : other);
  struct code_walk walk;
  app_pc pc = instr_get_app_pc(instr);
  code_walk_begin(&walk, drcontext, UINT32_MAX);
  bool is_store =
      code_walk_decode(&walk, pc) && !is_used(&walk, walk.next, register_set_of(reg), 0);
  code_walk_end(&walk);
  return is_store;
}
