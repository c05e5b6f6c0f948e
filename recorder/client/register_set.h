/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of general-purpose registers, whatever their width: a bit each. */
#ifndef REGISTER_SET_H
#define REGISTER_SET_H

#include "dr_api.h"

#include <stdint.h>

typedef uint32_t register_set;

/* Empty for registers of other kinds. */
static inline register_set register_set_of(reg_id_t reg) {
  return reg_is_gpr(reg) ? 1u << (reg_to_pointer_sized(reg) - DR_REG_START_GPR) : 0;
}

/* Those that an operand names: itself, or the parts of its address. */
static inline register_set registers_of_operand(opnd_t operand) {
  register_set set = 0;
  for (int i = 0; i < opnd_num_regs_used(operand); i++)
    set |= register_set_of(opnd_get_reg_used(operand, i));
  return set;
}

/* Those that an instruction reads or uses in an address. */
static inline register_set registers_read(instr_t *instr) {
  register_set set = 0;
  for (int i = 0; i < instr_num_srcs(instr); i++)
    set |= registers_of_operand(instr_get_src(instr, i));
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    if (!opnd_is_reg(instr_get_dst(instr, i)))
      set |= registers_of_operand(instr_get_dst(instr, i));
  }
  return set;
}

/* Those that an instruction changes, in part or under a condition too. */
static inline register_set registers_written(instr_t *instr) {
  register_set set = 0;
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    if (opnd_is_reg(instr_get_dst(instr, i)))
      set |= register_set_of(opnd_get_reg(instr_get_dst(instr, i)));
  }
  return set;
}

#endif
