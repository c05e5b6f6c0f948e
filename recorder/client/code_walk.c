/* SPDX-License-Identifier: Apache-2.0 */
#include "code_walk.h"

#include "yielding_functions.h"

#include <string.h>

#define INSTRUCTION_BYTES_MAX 16u

void code_walk_begin(struct code_walk *walk, void *drcontext, uint32_t steps) {
  memset(walk, 0, sizeof(*walk));
  walk->drcontext = drcontext;
  walk->steps = steps;
  walk->origin = FROM_LOOK;
  instr_init(drcontext, &walk->instr);
}

void code_walk_end(struct code_walk *walk) { instr_free(walk->drcontext, &walk->instr); }

/* --- instructions --------------------------------------------------------------------------- */

bool is_atomic_update(instr_t *instr) {
  return instr_get_prefix_flag(instr, PREFIX_LOCK) || instr_get_opcode(instr) == OP_xchg;
}

bool written_by_update(const struct symbolic_state *state, instr_t *instr, struct symbol *written) {
  switch (instr_get_opcode(instr)) {
  case OP_xchg: {
    opnd_t one = instr_get_dst(instr, 0), other = instr_get_dst(instr, 1);
    *written = symbolic_register(state, opnd_get_reg(opnd_is_reg(one) ? one : other));
    return true;
  }
  case OP_cmpxchg:
    for (int i = 0; i < instr_num_srcs(instr); i++) {
      opnd_t source = instr_get_src(instr, i);
      if (opnd_is_reg(source) && reg_to_pointer_sized(opnd_get_reg(source)) != DR_REG_XAX) {
        *written = symbolic_register(state, opnd_get_reg(source));
        return true;
      }
    }
    return false;
  case OP_bts:
    *written = (struct symbol){0, 1, 0};
    return true;
  default:
    return false;
  }
}

bool update_computes(const struct symbolic_state *state, instr_t *instr) {
  struct symbol written;
  if (!written_by_update(state, instr, &written))
    return true;
  bool compares = instr_get_opcode(instr) == OP_cmpxchg &&
                  (symbolic_register(state, DR_REG_XAX).origin & FROM_LOOK) != 0;
  return !symbol_is_constant(written) && (compares || (written.origin & FROM_LOOK) != 0);
}

bool may_take_lock(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return is_atomic_update(instr) && (opcode == OP_xchg || opcode == OP_cmpxchg || opcode == OP_bts);
}

static bool only_names_memory(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return opcode == OP_lea || opcode == OP_nop_modrm;
}

/* The memory operand by which it reads. */
static bool find_look(instr_t *instr, opnd_t *look) {
  if (only_names_memory(instr))
    return false;
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    *look = instr_get_src(instr, i);
    if (opnd_is_memory_reference(*look))
      return opnd_is_base_disp(*look) || opnd_is_rel_addr(*look) || opnd_is_abs_addr(*look);
  }
  return false;
}

/* At a word of up to eight bytes. */
bool may_look(instr_t *instr, opnd_t *look) {
  if (instr_is_cti(instr) || instr_is_rep_string_op(instr) || instr_is_prefetch(instr) ||
      (is_atomic_update(instr) && !may_take_lock(instr)) || !find_look(instr, look) ||
      opnd_size_in_bytes(opnd_get_size(*look)) > 8)
    return false;
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    if (opnd_is_memory_reference(instr_get_dst(instr, i)) && !is_atomic_update(instr))
      return false;
  }
  if (!opnd_is_base_disp(*look))
    return true;
  reg_id_t segment = opnd_get_segment(*look), base = opnd_get_base(*look);
  return segment != DR_SEG_FS && segment != DR_SEG_GS && base != DR_REG_XSP;
}

/* --- the path ------------------------------------------------------------------------------- */

/* It may not be mapped. */
bool code_walk_decode(struct code_walk *walk, app_pc pc) {
  byte code[2 * INSTRUCTION_BYTES_MAX] = {0};
  size_t read = 0;
  if (walk->steps == 0)
    return false;
  walk->steps--;
  dr_safe_read(pc, INSTRUCTION_BYTES_MAX, code, &read);
  if (read == 0)
    return false;
  instr_reset(walk->drcontext, &walk->instr);
  byte *end = decode_from_copy(walk->drcontext, code, pc, &walk->instr);
  if (end == NULL || (size_t)(end - code) > read)
    return false;
  walk->next = pc + (end - code);
  return true;
}

static void note_addresses(struct code_walk *walk, const struct symbolic_state *state) {
  if (only_names_memory(&walk->instr))
    return;
  for (int i = 0; i < instr_num_srcs(&walk->instr); i++) {
    opnd_t source = instr_get_src(&walk->instr, i);
    if (!opnd_is_base_disp(source))
      continue;
    struct symbol address = symbolic_address(state, source);
    if (!symbol_is_frame_address(address))
      walk->addresses =
          (walk->addresses ^ address.base ^ (uint64_t)address.offset) * 0x9e3779b97f4a7c15ull;
  }
}

/* Whether the path may store as this instruction does. */
static bool may_store(struct code_walk *walk, struct symbolic_state *state, app_pc pc) {
  instr_t *instr = &walk->instr;
  int opcode = instr_get_opcode(instr);
  if (opcode == OP_clflush || opcode == OP_clflushopt || opcode == OP_clwb)
    return false;
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    opnd_t target = instr_get_dst(instr, i);
    if (!opnd_is_memory_reference(target))
      continue;
    if (instr_is_rep_string_op(instr) ||
        !(opnd_is_base_disp(target) || opnd_is_rel_addr(target) || opnd_is_abs_addr(target)))
      return false;
    struct symbol address = symbolic_address(state, target);
    if (symbol_is_frame_address(address))
      continue;
    if (walk->stores != NULL) {
      if (walk->stores->count < WALK_STORES_MAX) {
        walk->stores->store[walk->stores->count].pc = pc;
        walk->stores->store[walk->stores->count++].address = address;
      }
      continue;
    }
    if (!is_atomic_update(instr) || !symbols_are_equal(address, walk->word))
      return false;
    state->has_updated |= pc != walk->target;
    if (update_computes(state, instr))
      return false;
  }
  return true;
}

static bool is_flag_branch(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return (opcode >= OP_jo && opcode <= OP_jnle) ||
         (opcode >= OP_jo_short && opcode <= OP_jnle_short);
}

/* The address that an indirect call or jump reads its target from, where that is always the same;
 * NULL for others. */
static app_pc pointer_of_call(instr_t *instr) {
  opnd_t target = instr_get_target(instr);
  return opnd_is_rel_addr(target) || opnd_is_abs_addr(target) ? opnd_get_addr(target) : NULL;
}

/* Goes where the call, jump or return at `*pc` leads; false where that is out of sight. */
static bool follow(struct code_walk *walk, struct symbolic_state *state, app_pc *pc) {
  instr_t *instr = &walk->instr;
  if (instr_is_return(instr))
    return symbolic_leave(state, pc);
  if (instr_is_ubr(instr)) {
    *pc = instr_get_branch_target_pc(instr);
    return true;
  }
  if (instr_is_call_direct(instr)) {
    *pc = instr_get_branch_target_pc(instr);
    return symbolic_enter(state, walk->next);
  }
  app_pc pointer = instr_is_mbr(instr) ? pointer_of_call(instr) : NULL;
  if (pointer == NULL || !is_yielding_function(pointer))
    return false;
  symbolic_call_returns(state, *pc, false);
  if (!instr_is_call(instr))
    return symbolic_leave(state, pc);
  *pc = walk->next;
  return true;
}

static bool call_kernel(struct symbolic_state *state, app_pc pc) {
  struct symbol number = symbolic_register(state, DR_REG_XAX);
  if (!symbol_is_constant(number) || !is_yielding_system_call(number.offset))
    return false;
  symbolic_call_returns(state, pc, true);
  return true;
}

/* The path may have left a first round that was taken out of the loop. */
static void note_look_again(struct code_walk *walk, app_pc pc) {
  for (uint32_t i = 0; i < walk->looks_again; i++) {
    if (walk->look_again[i] == pc)
      return;
  }
  if (walk->looks_again < WALK_LOOKS_MAX)
    walk->look_again[walk->looks_again++] = pc;
}

enum walk_stop code_walk_go(struct code_walk *walk, struct symbolic_state *state, app_pc *pc,
                            bool begins, struct walk_branch *branch) {
  opnd_t look;
  for (;; begins = false) {
    if (!begins && *pc == walk->target && state->calls == 0)
      return STOP_AT_TARGET;
    if (++state->instructions > WALK_INSTRUCTIONS_MAX || !code_walk_decode(walk, *pc))
      return STOP_ELSEWHERE;
    instr_t *instr = &walk->instr;
    if (!begins && may_look(instr, &look)) {
      struct symbol word = symbolic_address(state, look);
      if (walk->stops_at_looks && !symbol_is_frame_address(word))
        return STOP_AT_LOOK;
      if (state->has_depended && symbols_are_equal(word, walk->word))
        note_look_again(walk, *pc);
    }
    if (is_flag_branch(instr)) {
      *branch = (struct walk_branch){*pc, instr_get_branch_target_pc(instr), walk->next};
      state->has_depended |= (state->flags.origin & FROM_LOOK) != 0;
      return STOP_AT_BRANCH;
    }
    if (instr_is_cti(instr)) {
      if (!follow(walk, state, pc))
        return STOP_ELSEWHERE;
      continue;
    }
    if (instr_get_opcode(instr) == OP_syscall) {
      if (!call_kernel(state, *pc))
        return STOP_ELSEWHERE;
    } else {
      if (instr_is_interrupt(instr) || !may_store(walk, state, *pc))
        return STOP_ELSEWHERE;
      note_addresses(walk, state);
      walk->written |= registers_written(instr);
      symbolic_step(state, instr, &walk->word, walk->origin);
    }
    *pc = walk->next;
  }
}
