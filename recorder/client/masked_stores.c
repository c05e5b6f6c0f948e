/* SPDX-License-Identifier: Apache-2.0 */
#include "masked_stores.h"

#include "vector_elements.h"

#include <string.h>

static bool writes_memory(instr_t *instr) {
  return instr_num_dsts(instr) > 0 && opnd_is_memory_reference(instr_get_dst(instr, 0));
}

/* Which source is the mask, and the bytes of a lane, whose uppermost bit counts; 0 where the
 * instruction is not of this kind. As the engine orders the sources. */
static uint32_t lane_bytes(int opcode, int *mask_source) {
  *mask_source = opcode == OP_vmaskmovps || opcode == OP_vmaskmovpd ? 0 : 1;
  switch (opcode) {
  case OP_maskmovq:
  case OP_maskmovdqu:
  case OP_vmaskmovdqu:
    return 1;
  case OP_vmaskmovps:
  case OP_vpmaskmovd:
    return 4;
  case OP_vmaskmovpd:
  case OP_vpmaskmovq:
    return 8;
  default:
    return 0;
  }
}

static bool moves_mask(int opcode) {
  return opcode == OP_kmovw || opcode == OP_kmovb || opcode == OP_kmovq || opcode == OP_kmovd;
}

/* The mask register of an AVX-512 store, or DR_REG_NULL. The first one means no mask; a scatter,
 * which clears its mask, has an address per element instead. */
static reg_id_t opmask_of(instr_t *instr) {
  if (moves_mask(instr_get_opcode(instr)) || instr_is_scatter(instr))
    return DR_REG_NULL;
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    opnd_t source = instr_get_src(instr, i);
    if (opnd_is_reg(source) && reg_is_opmask(opnd_get_reg(source)) &&
        opnd_get_reg(source) != DR_REG_K0)
      return opnd_get_reg(source);
  }
  return DR_REG_NULL;
}

bool instr_is_masked_store(instr_t *instr) {
  int mask_source;
  return writes_memory(instr) && (lane_bytes(instr_get_opcode(instr), &mask_source) != 0 ||
                                  opmask_of(instr) != DR_REG_NULL);
}

bool masked_store_writes(instr_t *instr, const dr_mcontext_t *context) {
  int mask_source;
  uint32_t bytes = lane_bytes(instr_get_opcode(instr), &mask_source);
  if (bytes == 0) {
    reg_id_t mask = opmask_of(instr);
    return mask == DR_REG_NULL || context->opmask[mask - DR_REG_START_OPMASK] != 0;
  }
  reg_id_t reg = opnd_get_reg(instr_get_src(instr, mask_source));
  if (!reg_is_strictly_xmm(reg) && !reg_is_strictly_ymm(reg))
    return true; /* an MMX register, which the context does not have */
  const uint8_t *lanes = vector_bytes(context, reg);
  uint32_t count = opnd_size_in_bytes(reg_get_size(reg)) / bytes;
  for (uint32_t i = 0; i < count; i++) {
    if (lanes[(i + 1) * bytes - 1] >> 7 != 0)
      return true;
  }
  return false;
}
