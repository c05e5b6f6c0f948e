/* SPDX-License-Identifier: Apache-2.0 */
#include "vector_elements.h"

#include <string.h>

#define ADDRESS_SIZE_PREFIX 0x67
#define FS_PREFIX 0x64
#define GS_PREFIX 0x65
#define EVEX_PREFIX 0x62
#define EVEX_MODRM_OFFSET 5 /* behind four bytes of prefix and the opcode */

static bool describe_opcode(int opcode, struct vector_elements *elements) {
  elements->is_scatter = false;
  switch (opcode) {
  case OP_vpscatterdd:
  case OP_vscatterdps:
    elements->is_scatter = true; /* fall through */
  case OP_vpgatherdd:
  case OP_vgatherdps:
    elements->index_bytes = 4;
    elements->element_bytes = 4;
    return true;
  case OP_vpscatterdq:
  case OP_vscatterdpd:
    elements->is_scatter = true; /* fall through */
  case OP_vpgatherdq:
  case OP_vgatherdpd:
    elements->index_bytes = 4;
    elements->element_bytes = 8;
    return true;
  case OP_vpscatterqd:
  case OP_vscatterqps:
    elements->is_scatter = true; /* fall through */
  case OP_vpgatherqd:
  case OP_vgatherqps:
    elements->index_bytes = 8;
    elements->element_bytes = 4;
    return true;
  case OP_vpscatterqq:
  case OP_vscatterqpd:
    elements->is_scatter = true; /* fall through */
  case OP_vpgatherqq:
  case OP_vgatherqpd:
    elements->index_bytes = 8;
    elements->element_bytes = 8;
    return true;
  default:
    return false;
  }
}

static uint32_t register_bytes(reg_id_t reg) { return opnd_size_in_bytes(reg_get_size(reg)); }

/* AVX-512 counts an 8-bit displacement in elements; the engine's decoder takes it in bytes. */
static int64_t displacement_of(opnd_t operand, const uint8_t *pc, uint32_t element_bytes) {
  int64_t displacement = opnd_get_disp(operand);
  while (*pc == ADDRESS_SIZE_PREFIX || *pc == FS_PREFIX || *pc == GS_PREFIX)
    pc++;
  bool is_byte = pc[0] == EVEX_PREFIX && pc[EVEX_MODRM_OFFSET] >> 6 == 1;
  return is_byte ? displacement * element_bytes : displacement;
}

bool vector_elements_describe(instr_t *instr, const uint8_t *pc, struct vector_elements *elements) {
  if (!describe_opcode(instr_get_opcode(instr), elements))
    return false;
  opnd_t data = opnd_create_null();
  elements->operand = opnd_create_null();
  elements->mask = DR_REG_NULL;
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    opnd_t source = instr_get_src(instr, i);
    if (opnd_is_memory_reference(source))
      elements->operand = source;
    else if (opnd_is_reg(source) && reg_is_opmask(opnd_get_reg(source)))
      elements->mask = opnd_get_reg(source);
    else if (opnd_is_reg(source))
      data = source; /* a scatter's data, an AVX2 gather's mask */
  }
  if (elements->is_scatter) {
    for (int i = 0; i < instr_num_dsts(instr); i++) {
      if (opnd_is_memory_reference(instr_get_dst(instr, i)))
        elements->operand = instr_get_dst(instr, i);
    }
  } else {
    if (elements->mask == DR_REG_NULL)
      elements->mask = opnd_get_reg(data);
    data = instr_get_dst(instr, 0);
  }
  elements->displacement = displacement_of(elements->operand, pc, elements->element_bytes);
  uint32_t by_data = register_bytes(opnd_get_reg(data)) / elements->element_bytes;
  uint32_t by_index = register_bytes(opnd_get_index(elements->operand)) / elements->index_bytes;
  elements->count = by_data < by_index ? by_data : by_index;
  return true;
}

const uint8_t *vector_bytes(const dr_mcontext_t *context, reg_id_t reg) {
  uint32_t number = reg_is_strictly_zmm(reg)   ? (uint32_t)(reg - DR_REG_START_ZMM)
                    : reg_is_strictly_ymm(reg) ? (uint32_t)(reg - DR_REG_START_YMM)
                                               : (uint32_t)(reg - DR_REG_START_XMM);
  return (const uint8_t *)&context->simd[number];
}

static bool is_active(const struct vector_elements *elements, const dr_mcontext_t *context,
                      uint32_t element) {
  if (reg_is_opmask(elements->mask))
    return (context->opmask[elements->mask - DR_REG_START_OPMASK] >> element & 1) != 0;
  const uint8_t *mask = vector_bytes(context, elements->mask);
  return mask[(element + 1) * elements->element_bytes - 1] >> 7 != 0;
}

void vector_elements_addresses(const struct vector_elements *elements, dr_mcontext_t *context,
                               uint64_t *addresses) {
  reg_id_t base = opnd_get_base(elements->operand);
  const uint8_t *indices = vector_bytes(context, opnd_get_index(elements->operand));
  uint64_t start = (uint64_t)elements->displacement;
  if (base != DR_REG_NULL)
    start += reg_get_value(base, context);
  for (uint32_t i = 0; i < elements->count; i++) {
    int64_t index;
    if (elements->index_bytes == 4) {
      int32_t narrow;
      memcpy(&narrow, indices + i * 4, 4);
      index = narrow;
    } else {
      memcpy(&index, indices + i * 8, 8);
    }
    uint64_t scaled = (uint64_t)index * (uint64_t)opnd_get_scale(elements->operand);
    addresses[i] = is_active(elements, context, i) ? start + scaled : 0;
  }
}
