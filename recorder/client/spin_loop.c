/* SPDX-License-Identifier: Apache-2.0 */
#include "spin_loop.h"

#include "register_set.h"

/* Those that are replaced as a whole; 32-bit writes clear the upper half. */
static register_set registers_replaced(instr_t *instr) {
  register_set set = 0;
  if (instr_is_predicated(instr))
    return 0;
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    opnd_t target = instr_get_dst(instr, i);
    if (opnd_is_reg(target) &&
        (reg_is_64bit(opnd_get_reg(target)) || reg_is_32bit(opnd_get_reg(target))))
      set |= register_set_of(opnd_get_reg(target));
  }
  return set;
}

static bool names_other_registers(opnd_t operand) {
  return opnd_is_reg(operand) && !reg_is_gpr(opnd_get_reg(operand));
}

/* Whether all that `instr` uses and makes is in general-purpose registers, flags and memory, and
 * the same again where those are the same. */
static bool is_plain(instr_t *instr) {
  switch (instr_get_opcode(instr)) {
  case OP_rdtsc:
  case OP_rdtscp:
  case OP_rdpmc:
  case OP_rdrand:
  case OP_rdseed:
  case OP_cpuid:
  case OP_xgetbv:
    return false;
  default:
    break;
  }
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    if (names_other_registers(instr_get_src(instr, i)))
      return false;
  }
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    if (names_other_registers(instr_get_dst(instr, i)))
      return false;
  }
  return true;
}

bool block_repeats_itself(instrlist_t *block) {
  instr_t *first = instrlist_first_app(block), *last = instrlist_last_app(block);
  if (first == NULL || !instr_is_cbr(last) || !opnd_is_pc(instr_get_target(last)) ||
      opnd_get_pc(instr_get_target(last)) != instr_get_app_pc(first))
    return false;
  register_set carried = 0, replaced = 0, changed = 0;
  bool are_flags_replaced = false;
  for (instr_t *instr = first; instr != NULL; instr = instr_get_next_app(instr)) {
    uint flags = instr_get_eflags(instr, DR_QUERY_DEFAULT);
    if (!is_plain(instr) || ((flags & EFLAGS_READ_ARITH) != 0 && !are_flags_replaced))
      return false;
    carried |= registers_read(instr) & ~replaced;
    changed |= registers_written(instr);
    replaced |= registers_replaced(instr);
    are_flags_replaced |= (flags & EFLAGS_WRITE_ARITH) == EFLAGS_WRITE_ARITH;
  }
  return (carried & changed) == 0;
}
