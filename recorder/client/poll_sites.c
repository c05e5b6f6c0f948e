/* SPDX-License-Identifier: Apache-2.0 */
#include "poll_sites.h"

#include "polled_words.h"
#include "symbolic_state.h"
#include "yielding_functions.h"

#include <string.h>

/* Longer rounds are found when they have been executed. */
#define BRANCHES_MAX 12u
/* How often a path may come to the same branch. */
#define PASSES_MAX 2u
/* Instructions that are looked at for one block's sake. */
#define STEPS_MAX 2000u
#define INSTRUCTION_BYTES_MAX 16u

enum stop {
  STOP_AT_TARGET,
  STOP_AT_BRANCH,
  STOP_ELSEWHERE, /* waiting does not go on like this, or nobody knows where it would go */
};

struct branch {
  app_pc pc, taken, not_taken;
};

static struct search {
  void *drcontext;
  instr_t instr; /* the one that is looked at */
  app_pc next;
  app_pc target; /* the instruction that may poll */
  uint32_t steps;
  struct symbol word; /* where it reads, in this round */
  /* A path: its state before each branch, and which way it took. */
  struct symbolic_state state[BRANCHES_MAX + 1];
  struct branch branch[BRANCHES_MAX];
  bool takes[BRANCHES_MAX];
  /* Another one, which begins at a branch. */
  struct symbolic_state other_state[BRANCHES_MAX + 1];
  app_pc other_branch[BRANCHES_MAX];
  struct symbolic_state second, third; /* rounds on the first path */
} search;
static void *search_lock;

void poll_sites_init(void) { search_lock = dr_mutex_create(); }

void poll_sites_after_fork(void) { search_lock = dr_mutex_create(); }

void poll_sites_exit(void) { dr_mutex_destroy(search_lock); }

/* --- a path --------------------------------------------------------------------------------- */

/* Decodes the instruction at `pc`, which may not be mapped. */
static bool decode_at(app_pc pc) {
  byte code[2 * INSTRUCTION_BYTES_MAX] = {0};
  size_t read = 0;
  if (search.steps == 0)
    return false;
  search.steps--;
  dr_safe_read(pc, INSTRUCTION_BYTES_MAX, code, &read);
  if (read == 0)
    return false;
  instr_reset(search.drcontext, &search.instr);
  byte *end = decode_from_copy(search.drcontext, code, pc, &search.instr);
  if (end == NULL || (size_t)(end - code) > read)
    return false;
  search.next = pc + (end - code);
  return true;
}

static bool is_update(instr_t *instr) {
  return instr_get_prefix_flag(instr, PREFIX_LOCK) || instr_get_opcode(instr) == OP_xchg;
}

/* What an update of the polled word writes, where it does not add to what was there; false where it
 * does. */
static bool written_by_update(const struct symbolic_state *state, instr_t *instr,
                              struct symbol *written) {
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

static bool computes_from_what_it_read(const struct symbolic_state *state, instr_t *instr) {
  struct symbol written;
  return !written_by_update(state, instr, &written) ||
         ((written.origin & FROM_LOOK) != 0 && !symbol_is_constant(written));
}

/* Whether a thread that waits may store as this instruction does. */
static bool stores_harmlessly(const struct symbolic_state *state, instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  if (opcode == OP_clflush || opcode == OP_clflushopt || opcode == OP_clwb)
    return false;
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    opnd_t target = instr_get_dst(instr, i);
    if (!opnd_is_memory_reference(target))
      continue;
    if (instr_is_rep_string_op(instr) || !(opnd_is_base_disp(target) || opnd_is_rel_addr(target) ||
                                           opnd_is_abs_addr(target)))
      return false;
    struct symbol address = symbolic_address(state, target);
    if (symbol_is_frame_address(address))
      continue;
    if (!is_update(instr) || !symbols_are_equal(address, search.word) ||
        computes_from_what_it_read(state, instr))
      return false;
  }
  return true;
}

static bool is_flag_branch(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return (opcode >= OP_jo && opcode <= OP_jnle) || (opcode >= OP_jo_short && opcode <= OP_jnle_short);
}

/* The address that an indirect call or jump reads its target from, where that is always the same;
 * NULL for others. */
static app_pc pointer_of_call(instr_t *instr) {
  opnd_t target = instr_get_target(instr);
  return opnd_is_rel_addr(target) || opnd_is_abs_addr(target) ? opnd_get_addr(target) : NULL;
}

/* Goes where the call, jump or return at `*pc` leads; false where that is out of sight. */
static bool follow(struct symbolic_state *state, app_pc *pc) {
  instr_t *instr = &search.instr;
  if (instr_is_return(instr))
    return symbolic_leave(state, pc);
  if (instr_is_ubr(instr)) {
    *pc = instr_get_branch_target_pc(instr);
    return true;
  }
  if (instr_is_call_direct(instr)) {
    *pc = instr_get_branch_target_pc(instr);
    return symbolic_enter(state, search.next);
  }
  app_pc pointer = instr_is_mbr(instr) ? pointer_of_call(instr) : NULL;
  if (pointer == NULL || !is_yielding_function(pointer))
    return false;
  symbolic_call_returns(state, *pc, false);
  if (!instr_is_call(instr))
    return symbolic_leave(state, pc);
  *pc = search.next;
  return true;
}

static bool call_kernel(struct symbolic_state *state, app_pc pc) {
  struct symbol number = symbolic_register(state, DR_REG_XAX);
  if (!symbol_is_constant(number) || !is_yielding_system_call(number.offset))
    return false;
  symbolic_call_returns(state, pc, true);
  return true;
}

/* Goes on from `*pc`, at which a round begins, to where the path may stop. */
static enum stop walk(struct symbolic_state *state, app_pc *pc, bool begins,
                      struct branch *branch) {
  for (;; begins = false) {
    if (!begins && *pc == search.target && state->calls == 0)
      return STOP_AT_TARGET;
    if (!decode_at(*pc))
      return STOP_ELSEWHERE;
    instr_t *instr = &search.instr;
    if (is_flag_branch(instr)) {
      *branch = (struct branch){*pc, instr_get_branch_target_pc(instr), search.next};
      return STOP_AT_BRANCH;
    }
    if (instr_is_cti(instr)) {
      if (!follow(state, pc))
        return STOP_ELSEWHERE;
      continue;
    }
    if (instr_get_opcode(instr) == OP_syscall) {
      if (!call_kernel(state, *pc))
        return STOP_ELSEWHERE;
    } else {
      if (instr_is_interrupt(instr) || !stores_harmlessly(state, instr))
        return STOP_ELSEWHERE;
      symbolic_step(state, instr, &search.word, FROM_LOOK);
    }
    *pc = search.next;
  }
}

/* The memory operand by which the target reads. */
static bool find_look(instr_t *instr, opnd_t *look) {
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    *look = instr_get_src(instr, i);
    if (opnd_is_memory_reference(*look))
      return opnd_is_base_disp(*look) || opnd_is_rel_addr(*look) || opnd_is_abs_addr(*look);
  }
  return false;
}

/* A round begins in this state: where it reads. */
static bool begin_round(const struct symbolic_state *state) {
  opnd_t look;
  if (!decode_at(search.target) || !find_look(&search.instr, &look))
    return false;
  search.word = symbolic_address(state, look);
  return true;
}

/* --- what a round comes to ------------------------------------------------------------------ */

/* Whether a path from `pc`, whose state is that of this depth, comes back to the target. */
static bool comes_back(uint32_t depth, app_pc pc) {
  struct branch branch;
  switch (walk(&search.other_state[depth], &pc, false, &branch)) {
  case STOP_AT_TARGET:
    return true;
  case STOP_ELSEWHERE:
    return false;
  case STOP_AT_BRANCH:
    break;
  }
  uint32_t passes = 0;
  for (uint32_t i = 0; i < depth; i++)
    passes += search.other_branch[i] == branch.pc;
  if (depth == BRANCHES_MAX || passes == PASSES_MAX)
    return false;
  search.other_branch[depth] = branch.pc;
  search.other_state[depth + 1] = search.other_state[depth];
  if (comes_back(depth + 1, branch.taken))
    return true;
  search.other_state[depth + 1] = search.other_state[depth];
  return comes_back(depth + 1, branch.not_taken);
}

/* Goes the round of so many branches again that the path has gone. Notes the flags on which the
 * branches depend, and, where `leaves` is given, whether one that depends on the polled word alone
 * leads out of the loop: `before` has the flags of the round before. */
static bool go_round(struct symbolic_state *state, uint32_t branches, struct symbol *flags,
                     const struct symbol *before, bool *leaves) {
  app_pc pc = search.target;
  struct branch branch;
  if (!begin_round(state))
    return false;
  for (uint32_t i = 0; i < branches; i++) {
    if (walk(state, &pc, i == 0, &branch) != STOP_AT_BRANCH || branch.pc != search.branch[i].pc)
      return false;
    flags[i] = state->flags;
    if (leaves != NULL && !*leaves && (flags[i].origin & FROM_LOOK) != 0 &&
        symbols_are_equal(flags[i], before[i])) {
      search.other_state[0] = *state;
      *leaves = !comes_back(0, search.takes[i] ? branch.not_taken : branch.taken);
    }
    pc = search.takes[i] ? branch.taken : branch.not_taken;
  }
  return walk(state, &pc, branches == 0, &branch) == STOP_AT_TARGET;
}

/* Whether the path of so many branches, which has come back to the target, is a round of waiting:
 * going round changes nothing of its address, and the word decides. */
static bool is_waiting(uint32_t branches) {
  struct symbol flags[BRANCHES_MAX], later[BRANCHES_MAX];
  search.second = search.state[branches];
  if (!go_round(&search.second, branches, flags, NULL, NULL))
    return false;
  struct symbol word = search.word;
  search.third = search.second;
  if (symbol_is_frame_address(word) || !go_round(&search.third, branches, later, NULL, NULL) ||
      !symbols_are_equal(word, search.word))
    return false;
  bool is_decided = false;
  for (uint32_t i = 0; i < branches; i++)
    is_decided |= (later[i].origin & FROM_LOOK) != 0 && symbols_are_equal(flags[i], later[i]);
  if (!is_decided)
    return false;
  /* A round that changes nothing at all goes on until the word changes. */
  if (symbolic_states_are_equal(&search.second, &search.third))
    return true;
  bool leaves = false;
  return go_round(&search.third, branches, flags, later, &leaves) && leaves;
}

/* Looks for such a round on the paths from `pc`, whose state is that of this depth. */
static bool finds_round(uint32_t depth, app_pc pc) {
  struct branch branch;
  switch (walk(&search.state[depth], &pc, depth == 0, &branch)) {
  case STOP_AT_TARGET:
    return is_waiting(depth);
  case STOP_ELSEWHERE:
    return false;
  case STOP_AT_BRANCH:
    break;
  }
  uint32_t passes = 0;
  for (uint32_t i = 0; i < depth; i++)
    passes += search.branch[i].pc == branch.pc;
  if (depth == BRANCHES_MAX || passes == PASSES_MAX)
    return false;
  search.branch[depth] = branch;
  for (int way = 0; way < 2; way++) {
    search.takes[depth] = way == 0;
    search.state[depth + 1] = search.state[depth];
    struct symbol word = search.word;
    if (finds_round(depth + 1, way == 0 ? branch.taken : branch.not_taken))
      return true;
    search.word = word;
  }
  return false;
}

static bool polls(app_pc pc) {
  search.target = pc;
  symbolic_state_begin(&search.state[0]);
  return begin_round(&search.state[0]) && !symbol_is_frame_address(search.word) &&
         finds_round(0, pc);
}

/* --- which instructions --------------------------------------------------------------------- */

static bool may_take_lock(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  return is_update(instr) && (opcode == OP_xchg || opcode == OP_cmpxchg || opcode == OP_bts);
}

/* A word of up to eight bytes that other threads may have stored to. */
static bool may_look(instr_t *instr) {
  opnd_t look;
  if (instr_is_cti(instr) || instr_is_rep_string_op(instr) || instr_is_prefetch(instr) ||
      (is_update(instr) && !may_take_lock(instr)) || !find_look(instr, &look) ||
      opnd_size_in_bytes(opnd_get_size(look)) > 8)
    return false;
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    if (opnd_is_memory_reference(instr_get_dst(instr, i)) && !is_update(instr))
      return false;
  }
  if (!opnd_is_base_disp(look))
    return true;
  reg_id_t segment = opnd_get_segment(look), base = opnd_get_base(look);
  return segment != DR_SEG_FS && segment != DR_SEG_GS && base != DR_REG_XSP;
}

/* What takes a lock leaves something there. */
static bool takes_lock(instr_t *instr) {
  struct symbol written;
  return may_take_lock(instr) && begin_round(&search.second) &&
         written_by_update(&search.second, &search.instr, &written) &&
         !(symbol_is_constant(written) && written.offset == 0);
}

void poll_sites_find(void *drcontext, instrlist_t *block) {
  dr_mutex_lock(search_lock);
  search.drcontext = drcontext;
  search.steps = STEPS_MAX;
  instr_init(drcontext, &search.instr);
  for (instr_t *instr = instrlist_first_app(block); instr != NULL;
       instr = instr_get_next_app(instr)) {
    if (!may_look(instr) || !polls(instr_get_app_pc(instr)))
      continue;
    bool is_lock = takes_lock(instr);
    polled_words_expect((uint64_t)(ptr_uint_t)instr_get_app_pc(instr),
                        is_lock ? SITE_TAKES_LOCK : SITE_POLLS);
  }
  instr_free(drcontext, &search.instr);
  dr_mutex_unlock(search_lock);
}
