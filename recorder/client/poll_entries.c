/* SPDX-License-Identifier: Apache-2.0 */
#include "poll_entries.h"

#include "poll_rounds.h"

#include <string.h>

/* On the way from the update to the loop. */
#define BRANCHES_MAX 6u
#define LOOKS_MAX 16u

/* What has been found out about an instruction that looks. */
struct known_look {
  app_pc pc;
  bool polls;
};

/* Too large for a stack; searches come one after the other. */
static struct {
  struct code_walk walk;
  int opcode;            /* of the update */
  struct symbol written; /* what it writes, where it does not add */
  struct symbolic_state state[BRANCHES_MAX + 1];
  struct walk_branch branch[BRANCHES_MAX];
  bool takes[BRANCHES_MAX], depends[BRANCHES_MAX]; /* on what the update has read */
  struct walk_stores stores;
  struct symbolic_state other_state[BRANCHES_MAX + 1];
  struct known_look known[LOOKS_MAX];
  uint32_t looks;
  uint32_t best_steps; /* to the nearest one that was found */
  struct poll_entry best;
} search;

bool poll_entry_may_be(instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  bool has_memory = false;
  for (int i = 0; i < instr_num_dsts(instr); i++)
    has_memory |= opnd_is_memory_reference(instr_get_dst(instr, i));
  return has_memory && is_atomic_update(instr) &&
         (opcode == OP_xchg || opcode == OP_xadd || opcode == OP_add || opcode == OP_sub ||
          opcode == OP_inc || opcode == OP_dec);
}

static bool polls(app_pc pc) {
  for (uint32_t i = 0; i < search.looks; i++) {
    if (search.known[i].pc == pc)
      return search.known[i].polls;
  }
  if (search.looks == LOOKS_MAX)
    return false;
  struct code_walk walk;
  code_walk_begin(&walk, search.walk.drcontext, search.walk.steps);
  bool polls = poll_rounds_find(&walk, pc, pc) == POLLS_WORD;
  search.walk.steps = walk.steps;
  code_walk_end(&walk);
  search.known[search.looks++] = (struct known_look){pc, polls};
  return polls;
}

/* Whether a path from `pc`, whose state is that of this depth, comes to the look without the update
 * first. */
static bool comes_to(app_pc look, uint32_t depth, app_pc pc) {
  struct walk_branch branch;
  bool begins = false;
  for (;;) {
    enum walk_stop stop =
        code_walk_go(&search.walk, &search.other_state[depth], &pc, begins, &branch);
    if (stop == STOP_AT_BRANCH)
      break;
    if (stop != STOP_AT_LOOK || pc == look)
      return stop == STOP_AT_LOOK;
    begins = true;
  }
  if (depth == BRANCHES_MAX)
    return false;
  search.other_state[depth + 1] = search.other_state[depth];
  if (comes_to(look, depth + 1, branch.taken))
    return true;
  search.other_state[depth + 1] = search.other_state[depth];
  return comes_to(look, depth + 1, branch.not_taken);
}

/* Whether the first branch of the loop compares what it reads with what the update has read. */
static bool compares_turn(uint32_t depth, app_pc look, struct symbol word) {
  struct symbolic_state *state = &search.other_state[0];
  struct walk_branch branch;
  struct symbol update = search.walk.word;
  app_pc pc = look;
  struct walk_stores stores = search.stores;
  *state = search.state[depth];
  search.walk.word = word;
  search.walk.origin = FROM_LOOK;
  search.walk.stops_at_looks = false;
  bool compares = code_walk_go(&search.walk, state, &pc, true, &branch) == STOP_AT_BRANCH &&
                  state->flags.origin == (FROM_LOOK | FROM_UPDATE);
  search.walk.word = update;
  search.walk.origin = FROM_UPDATE;
  search.walk.stops_at_looks = true;
  search.stores = stores;
  return compares;
}

/* Whether what the update has read decides if the thread comes to the look. */
static bool decides(uint32_t depth, app_pc look) {
  for (uint32_t i = 0; i < depth; i++) {
    if (!search.depends[i])
      continue;
    const struct walk_branch *branch = &search.branch[i];
    struct walk_stores stores = search.stores;
    search.other_state[0] = search.state[i];
    bool comes = comes_to(look, 0, search.takes[i] ? branch->not_taken : branch->taken);
    search.stores = stores;
    if (!comes)
      return true;
  }
  return false;
}

/* The path has come to an instruction that polls. */
static void judge(uint32_t depth, app_pc look, uint32_t steps) {
  struct symbolic_state *state = &search.state[depth];
  opnd_t operand;
  if (steps >= search.best_steps || !may_look(&search.walk.instr, &operand))
    return;
  struct symbol word = symbolic_address(state, operand);
  bool is_exchange = search.opcode == OP_xchg;
  struct poll_entry entry = {.look = look};
  for (uint32_t i = 0; i < search.stores.count; i++) {
    if (symbols_are_equal(search.stores.store[i].address, word))
      entry.set_up = search.stores.store[i].pc;
  }
  if (!is_exchange && compares_turn(depth, look, word)) {
    entry.counts = false;
  } else if (is_exchange) {
    /* It puts something of its own there: behind that others will queue up. */
    bool is_queue = !symbol_is_constant(search.written) &&
                    ((word.origin & FROM_UPDATE) != 0 || decides(depth, look));
    if (!is_queue)
      return;
  } else if (decides(depth, look)) {
    entry.counts = true;
  } else {
    return;
  }
  search.best = entry;
  search.best_steps = steps;
}

static void explore(uint32_t depth, app_pc pc, bool begins, uint32_t steps) {
  struct walk_branch branch;
  for (;;) {
    uint32_t left = search.walk.steps;
    enum walk_stop stop = code_walk_go(&search.walk, &search.state[depth], &pc, begins, &branch);
    steps += left - search.walk.steps;
    if (stop == STOP_AT_BRANCH)
      break;
    if (stop != STOP_AT_LOOK)
      return;
    if (polls(pc)) {
      if (code_walk_decode(&search.walk, pc))
        judge(depth, pc, steps);
      return;
    }
    begins = true;
  }
  if (depth == BRANCHES_MAX)
    return;
  search.branch[depth] = branch;
  search.depends[depth] = (search.state[depth].flags.origin & FROM_UPDATE) != 0;
  struct walk_stores stores = search.stores;
  for (int way = 0; way < 2; way++) {
    search.takes[depth] = way == 0;
    search.stores = stores;
    search.state[depth + 1] = search.state[depth];
    explore(depth + 1, way == 0 ? branch.taken : branch.not_taken, false, steps);
  }
}

static bool begin(app_pc block, app_pc pc) {
  struct symbolic_state *state = &search.state[0];
  struct walk_branch branch;
  symbolic_state_begin(state);
  search.walk.word = (struct symbol){1, 0, 0}; /* It reads nowhere yet. */
  search.walk.stops_at_looks = false;
  if (code_walk_go(&search.walk, state, &block, false, &branch) != STOP_AT_TARGET ||
      !code_walk_decode(&search.walk, pc))
    return false;
  state->instructions = search.stores.count = 0;
  search.walk.stops_at_looks = true;
  instr_t *instr = &search.walk.instr;
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    opnd_t target = instr_get_dst(instr, i);
    if (!opnd_is_base_disp(target) && !opnd_is_rel_addr(target) && !opnd_is_abs_addr(target))
      continue;
    search.walk.word = symbolic_address(state, target);
    search.opcode = instr_get_opcode(instr);
    search.written = (struct symbol){0, 0, 0};
    written_by_update(state, instr, &search.written);
    return !symbol_is_frame_address(search.walk.word);
  }
  return false;
}

bool poll_entry_find(void *drcontext, app_pc block, app_pc pc, uint32_t steps,
                     struct poll_entry *entry) {
  code_walk_begin(&search.walk, drcontext, steps);
  search.walk.target = pc;
  search.walk.origin = FROM_UPDATE;
  search.walk.stores = &search.stores;
  search.looks = search.stores.count = 0;
  search.best_steps = UINT32_MAX;
  if (begin(block, pc))
    explore(0, pc, true, 0);
  code_walk_end(&search.walk);
  *entry = search.best;
  return search.best_steps != UINT32_MAX;
}
