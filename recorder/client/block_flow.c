/* SPDX-License-Identifier: Apache-2.0 */
#include "block_flow.h"

#include "dr_api.h"

#include <string.h>

/* Behind the general-purpose registers. */
#define FIRST_VECTOR 16u

/* The stack pointer is left out: where a loop's addresses repeat, it does. */
static uint64_t place_of(reg_id_t reg) {
  if (reg_is_gpr(reg)) {
    reg_id_t full = reg_to_pointer_sized(reg);
    return full == DR_REG_XSP ? 0 : 1ull << (full - DR_REG_START_GPR);
  }
  if (reg >= DR_REG_START_XMM && reg <= DR_REG_STOP_XMM)
    return 1ull << (FIRST_VECTOR + (reg - DR_REG_START_XMM) % 32);
  if (reg >= DR_REG_START_YMM && reg <= DR_REG_STOP_YMM)
    return 1ull << (FIRST_VECTOR + (reg - DR_REG_START_YMM) % 32);
  if (reg >= DR_REG_START_ZMM && reg <= DR_REG_STOP_ZMM)
    return 1ull << (FIRST_VECTOR + (reg - DR_REG_START_ZMM) % 32);
  return 0;
}

static uint64_t places_of_operand(opnd_t operand) {
  uint64_t places = 0;
  for (int i = 0; i < opnd_num_regs_used(operand); i++)
    places |= place_of(opnd_get_reg_used(operand, i));
  return places;
}

static bool gets_old(int opcode) {
  return opcode == OP_xchg || opcode == OP_xadd || opcode == OP_cmpxchg || opcode == OP_cmpxchg8b ||
         opcode == OP_cmpxchg16b;
}

/* A byte that is moved or set from flags is used as a byte: what the register held above it does
 * not count. */
static bool is_whole(instr_t *instr, reg_id_t reg) {
  int opcode = instr_get_opcode(instr);
  return !reg_is_gpr(reg) || reg_is_64bit(reg) || reg_is_32bit(reg) || opcode == OP_mov_ld ||
         opcode == OP_mov_imm || (opcode >= OP_seto && opcode <= OP_setnle) || gets_old(opcode);
}

static bool computes_address(int opcode) { return opcode == OP_lea; }

static void add_registers(struct flow_instruction *flow, instr_t *instr) {
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    opnd_t source = instr_get_src(instr, i);
    if (opnd_is_reg(source) || computes_address(instr_get_opcode(instr)))
      flow->reads |= places_of_operand(source);
  }
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    opnd_t target = instr_get_dst(instr, i);
    if (!opnd_is_reg(target))
      continue;
    uint64_t place = place_of(opnd_get_reg(target));
    if (is_whole(instr, opnd_get_reg(target)) && !instr_is_predicated(instr))
      flow->replaces |= place;
    else
      flow->changes |= place;
  }
}

static void add_flags(struct flow_instruction *flow, instr_t *instr) {
  uint flags = instr_get_eflags(instr, DR_QUERY_INCLUDE_ALL);
  if ((flags & EFLAGS_READ_ARITH) != 0)
    flow->reads |= 1ull << FLOW_FLAGS;
  /* Those that an instruction leaves alone are hardly ever read behind it. */
  if ((flags & EFLAGS_WRITE_ARITH) != 0)
    flow->replaces |= 1ull << FLOW_FLAGS;
}

static bool is_copy(int opcode) {
  switch (opcode) {
  case OP_mov_ld:
  case OP_mov_st:
  case OP_mov_imm:
  case OP_movzx:
  case OP_push:
  case OP_push_imm:
  case OP_pop:
  case OP_movaps:
  case OP_movups:
  case OP_movdqa:
  case OP_movdqu:
  case OP_movapd:
  case OP_movupd:
  case OP_movd:
  case OP_movq:
  case OP_vmovaps:
  case OP_vmovups:
  case OP_vmovdqa:
  case OP_vmovdqu:
  case OP_leave:
    return true;
  default:
    return false;
  }
}

static bool reads_clock(instr_t *instr) {
  switch (instr_get_opcode(instr)) {
  case OP_rdtsc:
  case OP_rdtscp:
  case OP_rdpmc:
  case OP_rdrand:
  case OP_rdseed:
  case OP_cpuid:
  case OP_syscall:
    return true;
  default:
    return false;
  }
}

static bool clears(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  if (opcode != OP_xor && opcode != OP_sub && opcode != OP_pxor && opcode != OP_xorps &&
      opcode != OP_vpxor)
    return false;
  return instr_num_srcs(instr) == 2 && opnd_is_reg(instr_get_src(instr, 0)) &&
         opnd_same(instr_get_src(instr, 0), instr_get_src(instr, 1));
}

/* Whether its effects are in none of the places, and matter: what it does is not followed. */
static bool is_opaque(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return opcode == OP_xsave32 || opcode == OP_xsave64 || opcode == OP_xsavec32 ||
         opcode == OP_xsavec64 || opcode == OP_xrstor32 || opcode == OP_xrstor64 ||
         opcode == OP_fxsave64 || opcode == OP_fxrstor64;
}

static void describe(struct flow_instruction *flow, instr_t *instr) {
  add_registers(flow, instr);
  add_flags(flow, instr);
  if (reads_clock(instr))
    flow->kind = FLOW_READS_CLOCK;
  else if (clears(instr))
    flow->kind = FLOW_CLEARS;
  else if (gets_old(instr_get_opcode(instr)))
    flow->kind = FLOW_GETS_OLD;
  else if (is_copy(instr_get_opcode(instr)))
    flow->kind = FLOW_COPIES;
  flow->is_branch = instr_is_cbr(instr) || (instr_is_mbr(instr) && !instr_is_return(instr));
}

struct block_flow *block_flow_create(struct arena *arena, const struct block *block) {
  void *drcontext = dr_get_current_drcontext();
  struct block_flow *flow =
      arena_allocate(arena, sizeof(*flow) + block->instructions * sizeof(struct flow_instruction));
  memset(flow, 0, sizeof(*flow) + block->instructions * sizeof(struct flow_instruction));
  flow->instructions = block->instructions;
  /* Decoders read ahead of an instruction's end. */
  byte code[32];
  instr_t instr;
  instr_init(drcontext, &instr);
  uint32_t at = 0, slot = 0;
  for (uint32_t i = 0; i < block->instructions; i++) {
    memset(code, 0, sizeof(code));
    memcpy(code, block->code + at, block->lengths[i]);
    instr_reset(drcontext, &instr);
    struct flow_instruction *described = &flow->instruction[i];
    app_pc pc = (app_pc)(ptr_uint_t)(block->address + at);
    if (decode_from_copy(drcontext, code, pc, &instr) == NULL || is_opaque(&instr))
      flow->is_opaque = true;
    else
      describe(described, &instr);
    described->first_slot = (uint16_t)slot;
    while (slot < block->slots && block->slot[slot].instruction == i)
      slot++;
    described->slots = (uint16_t)(slot - described->first_slot);
    at += block->lengths[i];
  }
  instr_free(drcontext, &instr);
  return flow;
}
