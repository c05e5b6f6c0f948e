/* SPDX-License-Identifier: Apache-2.0 */
#include "poll_rounds.h"

#include <string.h>

/* Too large for a stack; searches come one after the other (poll_sites.c). */
static struct {
  struct code_walk *walk;
  /* A path: its state before each branch, and which way it took. */
  struct symbolic_state state[WALK_BRANCHES_MAX + 1];
  struct walk_branch branch[WALK_BRANCHES_MAX];
  bool takes[WALK_BRANCHES_MAX];
  /* Another one, which begins at a branch. */
  struct symbolic_state other_state[WALK_BRANCHES_MAX + 1];
  app_pc other_branch[WALK_BRANCHES_MAX];
  struct symbolic_state second, third; /* rounds on the first path */
  /* Of the target that is an update: it was found to wait; on some path, perhaps another one, it
   * makes what it writes of what it has read. */
  bool is_found, computes, updates_otherwise;
  bool moves; /* such a round changes the registers that say where the target reads */
} search;

/* A round begins in this state: where it reads. */
static bool begin_round(struct symbolic_state *state) {
  opnd_t look;
  if (!code_walk_decode(search.walk, search.walk->target) || !may_look(&search.walk->instr, &look))
    return false;
  search.walk->word = symbolic_address(state, look);
  search.walk->addresses = 0;
  search.walk->written = 0;
  state->instructions = 0;
  return true;
}

/* Whether the target would read the same word again, for all that is known: a thread that polls one
 * word after another has left the loop in which it polls the first. */
static bool looks_there(const struct symbolic_state *state) {
  opnd_t look;
  return search.moves || !code_walk_decode(search.walk, search.walk->target) ||
         !may_look(&search.walk->instr, &look) ||
         symbols_are_equal(symbolic_address(state, look), search.walk->word);
}

/* Whether a path from `pc`, whose state is that of this depth, comes back to look there. */
static bool comes_back(uint32_t depth, app_pc pc) {
  struct walk_branch branch;
  switch (code_walk_go(search.walk, &search.other_state[depth], &pc, false, &branch)) {
  case STOP_AT_TARGET:
    return looks_there(&search.other_state[depth]);
  case STOP_AT_LOOK:
  case STOP_ELSEWHERE:
    return false;
  case STOP_AT_BRANCH:
    break;
  }
  uint32_t passes = 0;
  for (uint32_t i = 0; i < depth; i++)
    passes += search.other_branch[i] == branch.pc;
  if (depth == WALK_BRANCHES_MAX || passes == WALK_PASSES_MAX)
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
  app_pc pc = search.walk->target;
  struct walk_branch branch;
  if (!begin_round(state))
    return false;
  for (uint32_t i = 0; i < branches; i++) {
    if (code_walk_go(search.walk, state, &pc, i == 0, &branch) != STOP_AT_BRANCH ||
        branch.pc != search.branch[i].pc)
      return false;
    flags[i] = state->flags;
    if (leaves != NULL && !*leaves && (flags[i].origin & FROM_LOOK) != 0 &&
        symbols_are_equal(flags[i], before[i])) {
      search.other_state[0] = *state;
      search.other_state[0].instructions = 0;
      *leaves = !comes_back(0, search.takes[i] ? branch.not_taken : branch.taken);
    }
    pc = search.takes[i] ? branch.taken : branch.not_taken;
  }
  return code_walk_go(search.walk, state, &pc, branches == 0, &branch) == STOP_AT_TARGET;
}

/* Whether the path of so many branches, which has come back to the target, is a round of waiting:
 * going round changes nothing of its address, and the word decides. */
static bool is_waiting(uint32_t branches) {
  struct symbol flags[WALK_BRANCHES_MAX], later[WALK_BRANCHES_MAX];
  search.second = search.state[branches];
  if (!go_round(&search.second, branches, flags, NULL, NULL))
    return false;
  struct symbol word = search.walk->word;
  uint64_t addresses = search.walk->addresses;
  search.third = search.second;
  if (symbol_is_frame_address(word) || !go_round(&search.third, branches, later, NULL, NULL) ||
      !symbols_are_equal(word, search.walk->word) || addresses != search.walk->addresses)
    return false;
  bool is_decided = false;
  for (uint32_t i = 0; i < branches; i++)
    is_decided |= (later[i].origin & FROM_LOOK) != 0 && symbols_are_equal(flags[i], later[i]);
  if (!is_decided)
    return false;
  /* A round that changes nothing at all goes on until the word changes. */
  if (symbolic_states_are_equal(&search.second, &search.third))
    return true;
  opnd_t look;
  register_set written = search.walk->written;
  search.moves = !code_walk_decode(search.walk, search.walk->target) ||
                 !may_look(&search.walk->instr, &look) ||
                 (registers_of_operand(look) & written) != 0;
  bool leaves = false;
  return go_round(&search.third, branches, flags, later, &leaves) && leaves;
}

/* Of an update all paths count: nothing is known of values, so that some of them nobody can go. */
static bool judge_round(uint32_t depth) {
  if (!code_walk_decode(search.walk, search.walk->target) || !may_take_lock(&search.walk->instr))
    return is_waiting(depth);
  search.computes |= update_computes(&search.state[depth], &search.walk->instr);
  search.updates_otherwise |= search.state[depth].has_updated;
  search.is_found |= is_waiting(depth);
  return false;
}

/* Looks for such a round on the paths from `pc`, whose state is that of this depth. */
static bool finds_round(uint32_t depth, app_pc pc) {
  struct walk_branch branch;
  switch (code_walk_go(search.walk, &search.state[depth], &pc, depth == 0, &branch)) {
  case STOP_AT_TARGET:
    return judge_round(depth);
  case STOP_AT_LOOK:
  case STOP_ELSEWHERE:
    return false;
  case STOP_AT_BRANCH:
    break;
  }
  /* What is read is looked at soon: this keeps the search short. */
  if (depth == 0 && (search.state[0].flags.origin & FROM_LOOK) == 0)
    return false;
  uint32_t passes = 0;
  for (uint32_t i = 0; i < depth; i++)
    passes += search.branch[i].pc == branch.pc;
  if (depth == WALK_BRANCHES_MAX || passes == WALK_PASSES_MAX)
    return false;
  search.branch[depth] = branch;
  for (int way = 0; way < 2; way++) {
    search.takes[depth] = way == 0;
    search.state[depth + 1] = search.state[depth];
    struct symbol word = search.walk->word;
    if (finds_round(depth + 1, way == 0 ? branch.taken : branch.not_taken))
      return true;
    search.walk->word = word;
  }
  return false;
}

/* What is known before the target from the instructions of its block, which begins at `pc`. */
static bool come_to_target(app_pc pc) {
  struct walk_stores ignored = {.count = 0};
  struct walk_branch branch;
  symbolic_state_begin(&search.state[0]);
  search.walk->stores = &ignored;
  bool comes = code_walk_go(search.walk, &search.state[0], &pc, false, &branch) == STOP_AT_TARGET;
  search.walk->stores = NULL;
  return comes;
}

/* Whether the instruction is part of a loop that waits. */
static bool is_in_round(app_pc block, app_pc pc) {
  search.walk->target = pc;
  search.walk->word = (struct symbol){1, 0, 0}; /* It reads nowhere yet. */
  if (!come_to_target(block))
    return false;
  search.walk->looks_again = 0;
  search.is_found = search.computes = false;
  if (!begin_round(&search.state[0]) || symbol_is_frame_address(search.walk->word))
    return false;
  return finds_round(0, pc) || (search.is_found && !search.computes && search.walk->steps != 0);
}

/* Or of a first round that a compiler has taken out of one: it looks at the same word. */
static bool comes_before_round(void) {
  app_pc again[WALK_LOOKS_MAX];
  uint32_t count = search.walk->looks_again;
  memcpy(again, search.walk->look_again, sizeof(again));
  for (uint32_t i = 0; i < count; i++) {
    /* What a compare and exchange expects is made before it, out of sight here. */
    bool is_in_sight = code_walk_decode(search.walk, again[i]) &&
                       instr_get_opcode(&search.walk->instr) != OP_cmpxchg;
    if (is_in_sight && is_in_round(again[i], again[i]))
      return true;
  }
  return false;
}

/* Of the update that is the target: a lock is taken in one way, which leaves something there. Where
 * there are several ways to update the word, they make more of it than a lock. */
static enum poll_kind kind_of_update(const struct symbolic_state *state) {
  struct symbol written;
  if (search.updates_otherwise)
    return POLLS_NOTHING;
  bool is_written = written_by_update(state, &search.walk->instr, &written);
  bool is_cleared = is_written && symbol_is_constant(written) && written.offset == 0;
  return is_cleared ? POLLS_WORD : POLLS_LOCK;
}

enum poll_kind poll_rounds_find(struct code_walk *walk, app_pc block, app_pc pc) {
  search.walk = walk;
  search.updates_otherwise = false;
  bool is_in = is_in_round(block, pc);
  struct symbolic_state *state = is_in ? &search.second : &search.third;
  if (!is_in && !comes_before_round())
    return POLLS_NOTHING;
  if (!is_in)
    symbolic_state_begin(state);
  walk->target = pc;
  if (!begin_round(state))
    return POLLS_NOTHING;
  return may_take_lock(&walk->instr) ? kind_of_update(state) : POLLS_WORD;
}
