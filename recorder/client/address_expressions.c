/* SPDX-License-Identifier: Apache-2.0 */
#include "address_expressions.h"

#include "register_set.h"

void address_expressions_init(struct address_expressions *expressions) {
  expressions->count = expressions->oldest = 0;
}

void address_expressions_add(struct address_expressions *expressions, reg_id_t base, reg_id_t index,
                             int scale, uint16_t raw, int64_t displacement) {
  uint32_t at;
  if (expressions->count < EXPRESSIONS_MAX) {
    at = expressions->count++;
  } else {
    at = expressions->oldest;
    expressions->oldest = (expressions->oldest + 1) % EXPRESSIONS_MAX;
  }
  expressions->expression[at] = (struct address_expression){
      .base = base, .index = index, .scale = scale, .raw = raw, .displacement = displacement};
}

bool address_expressions_find(const struct address_expressions *expressions, reg_id_t base,
                              reg_id_t index, int scale, uint16_t *raw, int64_t *displacement) {
  for (uint32_t i = 0; i < expressions->count; i++) {
    const struct address_expression *known = &expressions->expression[i];
    if (known->base == base && known->index == index &&
        (index == DR_REG_NULL || known->scale == scale)) {
      *raw = known->raw;
      *displacement = known->displacement;
      return true;
    }
  }
  return false;
}

/* Whether `instr` adds a constant to the 64-bit register `reg`, and which. */
static bool adds_constant(instr_t *instr, reg_id_t reg, int64_t *constant) {
  opnd_t target = opnd_create_reg(reg);
  bool is_target = instr_num_dsts(instr) > 0 && opnd_same(instr_get_dst(instr, 0), target);
  switch (instr_get_opcode(instr)) {
  case OP_push:
  case OP_push_imm:
    if (reg != DR_REG_XSP)
      return false;
    *constant = -(int64_t)opnd_size_in_bytes(opnd_get_size(instr_get_dst(instr, 1)));
    return true;
  case OP_pop:
    if (reg != DR_REG_XSP || is_target)
      return false;
    *constant = (int64_t)opnd_size_in_bytes(opnd_get_size(instr_get_src(instr, 1)));
    return true;
  case OP_add:
  case OP_sub:
    if (!is_target || !opnd_is_immed_int(instr_get_src(instr, 0)))
      return false;
    *constant = opnd_get_immed_int(instr_get_src(instr, 0));
    if (instr_get_opcode(instr) == OP_sub)
      *constant = -*constant;
    return true;
  case OP_inc:
  case OP_dec:
    *constant = instr_get_opcode(instr) == OP_inc ? 1 : -1;
    return is_target;
  case OP_lea: {
    opnd_t source = instr_get_src(instr, 0);
    if (!is_target || !opnd_is_base_disp(source) || opnd_get_base(source) != reg ||
        opnd_get_index(source) != DR_REG_NULL)
      return false;
    *constant = opnd_get_disp(source);
    return true;
  }
  default:
    return false;
  }
}

/* How far `instr` moves `reg`; false where nobody knows. */
static bool register_survives(instr_t *instr, register_set written, reg_id_t reg, int64_t *moved) {
  *moved = 0;
  if (reg == DR_REG_NULL || (written & register_set_of(reg)) == 0)
    return true;
  return adds_constant(instr, reg, moved);
}

static void copy_register(struct address_expressions *expressions, instr_t *instr) {
  if (instr_get_opcode(instr) != OP_mov_ld && instr_get_opcode(instr) != OP_mov_st)
    return;
  opnd_t from = instr_get_src(instr, 0), to = instr_get_dst(instr, 0);
  uint16_t raw;
  int64_t displacement;
  if (opnd_is_reg(from) && opnd_is_reg(to) && reg_is_gpr(opnd_get_reg(from)) &&
      reg_is_64bit(opnd_get_reg(from)) && reg_is_gpr(opnd_get_reg(to)) &&
      reg_is_64bit(opnd_get_reg(to)) && opnd_get_reg(from) != opnd_get_reg(to) &&
      address_expressions_find(expressions, opnd_get_reg(from), DR_REG_NULL, 1, &raw,
                               &displacement))
    address_expressions_add(expressions, opnd_get_reg(to), DR_REG_NULL, 1, raw, displacement);
}

void address_expressions_step(struct address_expressions *expressions, instr_t *instr) {
  register_set written = registers_written(instr);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < expressions->count; i++) {
    struct address_expression known = expressions->expression[i];
    int64_t base_moved, index_moved;
    if (!register_survives(instr, written, known.base, &base_moved) ||
        !register_survives(instr, written, known.index, &index_moved))
      continue;
    known.displacement += base_moved + index_moved * known.scale;
    expressions->expression[kept++] = known;
  }
  if (kept != expressions->count)
    expressions->oldest = 0;
  expressions->count = kept;
  copy_register(expressions, instr);
}
