/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolic_state.h"

#include <string.h>

/* Bases of values: constants, registers at the beginning, and mixtures beyond all of these. */
#define FIRST_GPR_BASE 1u
#define FIRST_VECTOR_BASE 32u
#define FLAGS_BASE 100u
#define UNKNOWN_SEED 0x5851f42d4c957f2dull
#define LOAD_SEED 0x14057b7ef767814full
#define ADDRESS_SEED 0x2545f4914f6cdd1dull

#define NO_PLACE UINT32_MAX
#define STACK_POINTER 4u
#define FRAME_POINTER 5u

static uint64_t mix(uint64_t hash, uint64_t more) {
  hash = (hash ^ more) * 0x9e3779b97f4a7c15ull;
  return (hash ^ hash >> 29) | 1ull << 63;
}

static uint64_t mix_symbol(uint64_t hash, struct symbol symbol) {
  return mix(mix(hash, symbol.base), (uint64_t)symbol.offset);
}

static struct symbol constant(int64_t value) { return (struct symbol){0, value, 0}; }

static struct symbol new_unknown(struct symbolic_state *state) {
  return (struct symbol){mix(UNKNOWN_SEED, ++state->unknowns), 0, 0};
}

void symbolic_state_begin(struct symbolic_state *state) {
  memset(state, 0, sizeof(*state));
  for (uint32_t i = 0; i < SYMBOLIC_GPRS; i++)
    state->gpr[i].base = FIRST_GPR_BASE + i;
  for (uint32_t i = 0; i < SYMBOLIC_VECTORS; i++)
    state->vector[i].base = FIRST_VECTOR_BASE + i;
  state->flags.base = FLAGS_BASE;
}

static int find_slot(const struct symbolic_state *state, struct symbol address) {
  for (uint32_t i = 0; i < state->slots; i++) {
    if (symbols_are_equal(state->slot[i].address, address))
      return (int)i;
  }
  return -1;
}

bool symbolic_states_are_equal(const struct symbolic_state *one,
                               const struct symbolic_state *other) {
  for (uint32_t i = 0; i < SYMBOLIC_GPRS; i++) {
    if (!symbols_are_equal(one->gpr[i], other->gpr[i]))
      return false;
  }
  for (uint32_t i = 0; i < SYMBOLIC_VECTORS; i++) {
    if (!symbols_are_equal(one->vector[i], other->vector[i]))
      return false;
  }
  for (uint32_t i = 0; i < other->slots; i++) {
    int slot = find_slot(one, other->slot[i].address);
    if (slot < 0 || !symbols_are_equal(one->slot[slot].value, other->slot[i].value))
      return false;
  }
  return true;
}

/* --- values --------------------------------------------------------------------------------- */

static struct symbol *place_of(struct symbolic_state *state, reg_id_t reg) {
  if (reg_is_gpr(reg))
    return &state->gpr[reg_to_pointer_sized(reg) - DR_REG_START_GPR];
  if (reg >= DR_REG_START_XMM && reg <= DR_REG_STOP_XMM)
    return &state->vector[(reg - DR_REG_START_XMM) % SYMBOLIC_VECTORS];
  if (reg >= DR_REG_START_YMM && reg <= DR_REG_STOP_YMM)
    return &state->vector[(reg - DR_REG_START_YMM) % SYMBOLIC_VECTORS];
  if (reg >= DR_REG_START_ZMM && reg <= DR_REG_STOP_ZMM)
    return &state->vector[(reg - DR_REG_START_ZMM) % SYMBOLIC_VECTORS];
  return NULL;
}

struct symbol symbolic_register(const struct symbolic_state *state, reg_id_t reg) {
  const struct symbol *place = place_of((struct symbolic_state *)(uintptr_t)state, reg);
  return place != NULL ? *place : constant(0);
}

struct symbol symbolic_address(const struct symbolic_state *state, opnd_t operand) {
  if (opnd_is_rel_addr(operand) || opnd_is_abs_addr(operand))
    return constant((int64_t)(ptr_int_t)opnd_get_addr(operand));
  struct symbol address = symbolic_register(state, opnd_get_base(operand));
  reg_id_t segment = opnd_get_segment(operand);
  if (opnd_get_index(operand) != DR_REG_NULL) {
    struct symbol index = symbolic_register(state, opnd_get_index(operand));
    address.origin |= index.origin;
    if (symbol_is_constant(index)) {
      address.offset += index.offset * opnd_get_scale(operand);
    } else {
      uint64_t hash = mix_symbol(mix(ADDRESS_SEED, address.base), index);
      address.base = mix(hash, (uint64_t)opnd_get_scale(operand));
    }
  }
  if (segment == DR_SEG_FS || segment == DR_SEG_GS)
    address.base = mix(address.base, segment);
  address.offset += opnd_get_disp(operand);
  return address;
}

/* Code that has a frame pointer keeps its variables below it; one that has none uses the register
 * for whatever it points to, seldom backwards. */
bool symbol_is_frame_address(struct symbol address) {
  return address.base == FIRST_GPR_BASE + STACK_POINTER ||
         (address.base == FIRST_GPR_BASE + FRAME_POINTER && address.offset < 0);
}

static struct symbol load(const struct symbolic_state *state, struct symbol address,
                          const struct symbol *watched, enum symbol_origin origin) {
  int slot = find_slot(state, address);
  if (slot >= 0)
    return state->slot[slot].value;
  struct symbol value = {mix_symbol(LOAD_SEED, address), 0, address.origin};
  if (watched != NULL && symbols_are_equal(*watched, address))
    value.origin |= (uint8_t)origin;
  return value;
}

/* Only what is in the stack frame is followed. */
static void store(struct symbolic_state *state, struct symbol address, struct symbol value) {
  if (!symbol_is_frame_address(address))
    return;
  int slot = find_slot(state, address);
  for (uint32_t i = 0; i < state->slots; i++) {
    int64_t apart = state->slot[i].address.offset - address.offset;
    if ((int)i != slot && state->slot[i].address.base == address.base && apart > -8 && apart < 8 &&
        apart % 4 != 0)
      state->slot[i].value = new_unknown(state);
  }
  if (slot < 0) {
    /* Where there are too many, one is forgotten: it is then taken not to have changed. */
    slot = (int)(state->slots < SYMBOLIC_SLOTS ? state->slots++ : SYMBOLIC_SLOTS - 1);
    state->slot[slot].address = address;
  }
  state->slot[slot].value = value;
}

static struct symbol source_value(const struct symbolic_state *state, opnd_t source,
                                  const struct symbol *watched, enum symbol_origin origin) {
  if (opnd_is_immed_int(source))
    return constant(opnd_get_immed_int(source));
  if (opnd_is_reg(source))
    return symbolic_register(state, opnd_get_reg(source));
  if (opnd_is_memory_reference(source))
    return load(state, symbolic_address(state, source), watched, origin);
  return constant(0);
}

/* --- instructions --------------------------------------------------------------------------- */

static bool is_copy(int opcode) {
  return opcode == OP_mov_ld || opcode == OP_mov_st || opcode == OP_mov_imm || opcode == OP_movzx ||
         opcode == OP_movsx || opcode == OP_movsxd;
}

static bool is_zeroing(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return (opcode == OP_xor || opcode == OP_sub || opcode == OP_pxor || opcode == OP_xorps) &&
         instr_num_srcs(instr) == 2 && opnd_is_reg(instr_get_src(instr, 0)) &&
         opnd_same(instr_get_src(instr, 0), instr_get_src(instr, 1));
}

static bool differs_each_time(int opcode) {
  return opcode == OP_rdtsc || opcode == OP_rdtscp || opcode == OP_rdpmc || opcode == OP_rdrand ||
         opcode == OP_rdseed || opcode == OP_cpuid;
}

/* What an instruction computes that adds a constant; false for all others. */
static bool added_constant(const struct symbolic_state *state, instr_t *instr,
                           struct symbol *result) {
  int opcode = instr_get_opcode(instr);
  if (opcode == OP_lea) {
    *result = symbolic_address(state, instr_get_src(instr, 0));
    return true;
  }
  bool adds = opcode == OP_add || opcode == OP_inc,
       subtracts = opcode == OP_sub || opcode == OP_dec;
  if ((!adds && !subtracts) || !opnd_is_reg(instr_get_dst(instr, 0)))
    return false;
  int64_t amount = 1;
  if (opcode == OP_add || opcode == OP_sub) {
    opnd_t source = instr_get_src(instr, 0);
    struct symbol added = constant(0);
    if (opnd_is_immed_int(source))
      added.offset = opnd_get_immed_int(source);
    else if (opnd_is_reg(source))
      added = symbolic_register(state, opnd_get_reg(source));
    else
      return false;
    if (!symbol_is_constant(added))
      return false;
    amount = added.offset;
  }
  *result = symbolic_register(state, opnd_get_reg(instr_get_dst(instr, 0)));
  result->offset += adds ? amount : -amount;
  return true;
}

/* A value made of all that the instruction reads. */
static struct symbol mixture(const struct symbolic_state *state, instr_t *instr,
                             const struct symbol *watched, enum symbol_origin origin) {
  struct symbol result = {mix(UNKNOWN_SEED, (uint64_t)instr_get_opcode(instr)), 0, 0};
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    struct symbol value = source_value(state, instr_get_src(instr, i), watched, origin);
    result.base = mix_symbol(result.base, value);
    result.origin |= value.origin;
  }
  if ((instr_get_eflags(instr, DR_QUERY_INCLUDE_ALL) & EFLAGS_READ_ARITH) != 0) {
    result.base = mix_symbol(result.base, state->flags);
    result.origin |= state->flags.origin;
  }
  return result;
}

static void set_place(struct symbolic_state *state, opnd_t target, struct symbol address,
                      struct symbol value) {
  if (opnd_is_reg(target)) {
    struct symbol *place = place_of(state, opnd_get_reg(target));
    if (place != NULL)
      *place = value;
  } else if (opnd_is_memory_reference(target)) {
    store(state, address, value);
  }
}

static void exchange(struct symbolic_state *state, instr_t *instr, const struct symbol *watched,
                     enum symbol_origin origin) {
  opnd_t one = instr_get_dst(instr, 0), other = instr_get_dst(instr, 1);
  struct symbol address = constant(0);
  if (opnd_is_memory_reference(one))
    address = symbolic_address(state, one);
  struct symbol value_of_one = source_value(state, one, watched, origin);
  struct symbol value_of_other = source_value(state, other, watched, origin);
  set_place(state, one, address, value_of_other);
  set_place(state, other, address, value_of_one);
}

static void push_or_pop(struct symbolic_state *state, instr_t *instr, const struct symbol *watched,
                        enum symbol_origin origin) {
  struct symbol *top = &state->gpr[STACK_POINTER];
  if (instr_get_opcode(instr) == OP_pop) {
    struct symbol value = load(state, *top, watched, origin);
    top->offset += 8;
    set_place(state, instr_get_dst(instr, 0), *top, value);
  } else if (instr_get_opcode(instr) == OP_leave) {
    *top = state->gpr[FRAME_POINTER];
    state->gpr[FRAME_POINTER] = load(state, *top, watched, origin);
    top->offset += 8;
  } else {
    struct symbol value = source_value(state, instr_get_src(instr, 0), watched, origin);
    top->offset -= 8;
    store(state, *top, value);
  }
}

static bool is_push_or_pop(int opcode) {
  return opcode == OP_push || opcode == OP_push_imm || opcode == OP_pop || opcode == OP_leave;
}

void symbolic_step(struct symbolic_state *state, instr_t *instr, const struct symbol *watched,
                   enum symbol_origin origin) {
  int opcode = instr_get_opcode(instr);
  if (is_push_or_pop(opcode)) {
    push_or_pop(state, instr, watched, origin);
    return;
  }
  if (opcode == OP_xchg) {
    exchange(state, instr, watched, origin);
    return;
  }
  struct symbol mixed = mixture(state, instr, watched, origin), result = mixed;
  if (differs_each_time(opcode))
    result = mixed = new_unknown(state);
  else if (is_zeroing(instr))
    result = constant(0);
  else if (is_copy(opcode) && instr_num_srcs(instr) == 1)
    result = source_value(state, instr_get_src(instr, 0), watched, origin);
  else
    added_constant(state, instr, &result);
  /* An operand's address is made before the instruction's results. */
  struct symbol address[4];
  int targets = instr_num_dsts(instr);
  for (int i = 0; i < targets && i < 4; i++) {
    opnd_t target = instr_get_dst(instr, i);
    address[i] = opnd_is_memory_reference(target) ? symbolic_address(state, target) : constant(0);
  }
  for (int i = 0; i < targets; i++) {
    struct symbol value = result;
    if (i > 0 || opcode == OP_cmpxchg || opcode == OP_xadd)
      value.base = mix(value.base, (uint64_t)i + 1);
    set_place(state, instr_get_dst(instr, i), address[i < 4 ? i : 3], value);
  }
  if ((instr_get_eflags(instr, DR_QUERY_INCLUDE_ALL) & EFLAGS_WRITE_ARITH) != 0)
    state->flags = mixed;
}

void symbolic_call_returns(struct symbolic_state *state, app_pc pc, bool is_system_call) {
  static const uint8_t by_call[] = {0, 1, 2, 6, 7, 8, 9, 10, 11}, by_kernel[] = {0, 1, 11};
  const uint8_t *changed = is_system_call ? by_kernel : by_call;
  size_t count = is_system_call ? sizeof(by_kernel) : sizeof(by_call);
  for (size_t i = 0; i < count; i++)
    state->gpr[changed[i]] =
        (struct symbol){mix(mix(UNKNOWN_SEED, (uint64_t)(ptr_uint_t)pc), changed[i]), 0, 0};
  state->flags = (struct symbol){mix(UNKNOWN_SEED, (uint64_t)(ptr_uint_t)pc), 0, 0};
}

bool symbolic_enter(struct symbolic_state *state, app_pc return_to) {
  if (state->calls == SYMBOLIC_CALLS)
    return false;
  state->return_to[state->calls++] = return_to;
  state->gpr[STACK_POINTER].offset -= 8;
  return true;
}

bool symbolic_leave(struct symbolic_state *state, app_pc *return_to) {
  if (state->calls == 0)
    return false;
  *return_to = state->return_to[--state->calls];
  state->gpr[STACK_POINTER].offset += 8;
  return true;
}
