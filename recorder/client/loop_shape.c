/* SPDX-License-Identifier: Apache-2.0 */
#include "loop_shape.h"

#include "yielding_functions.h"

/* Beginnings of code that were found, and have been looked at or will be. */
#define PLACES_MAX 32u

static bool may_be_frame(opnd_t operand) {
  if (!opnd_is_base_disp(operand))
    return false;
  reg_id_t base = opnd_get_base(operand);
  return base == DR_REG_XSP || base == DR_REG_XBP;
}

static bool is_harmless(instr_t *instr) {
  if (instr_is_return(instr) || instr_is_interrupt(instr))
    return false;
  if (instr_is_cti(instr) || is_atomic_update(instr))
    return true;
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    opnd_t target = instr_get_dst(instr, i);
    if (opnd_is_memory_reference(target) && !may_be_frame(target))
      return false;
  }
  return true;
}

instr_t *loop_shape_first_harmless(instrlist_t *block) {
  instr_t *first = NULL;
  for (instr_t *instr = instrlist_first_app(block); instr != NULL;
       instr = instr_get_next_app(instr)) {
    if (!is_harmless(instr))
      first = NULL;
    else if (first == NULL)
      first = instr;
  }
  return first;
}

static bool reads_memory(instr_t *instr) {
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    if (opnd_is_memory_reference(instr_get_src(instr, i)) && instr_get_opcode(instr) != OP_lea)
      return true;
  }
  return false;
}

bool loop_shape_branches_on_read(instrlist_t *block) {
  instr_t *instr = instrlist_last_app(block);
  if (instr == NULL || !instr_is_cbr(instr))
    return false;
  register_set needed = 0;
  bool has_flags = false;
  while ((instr = instr_get_prev_app(instr)) != NULL) {
    bool sets_flags = (instr_get_eflags(instr, DR_QUERY_INCLUDE_ALL) & EFLAGS_WRITE_ARITH) != 0;
    if ((has_flags || !sets_flags) && (registers_written(instr) & needed) == 0)
      continue;
    if (reads_memory(instr))
      return true;
    /* A register may be set from flags that were set before. */
    bool reads_flags = (instr_get_eflags(instr, DR_QUERY_INCLUDE_ALL) & EFLAGS_READ_ARITH) != 0;
    has_flags = !reads_flags;
    needed |= registers_read(instr);
  }
  return false;
}

struct places {
  app_pc pc[PLACES_MAX];
  uint32_t count, done;
  bool has_loop; /* something leads back, wherever to */
};

static void add_place(struct places *places, app_pc pc) {
  for (uint32_t i = 0; i < places->count; i++) {
    if (places->pc[i] == pc)
      return;
  }
  if (places->count < PLACES_MAX)
    places->pc[places->count++] = pc;
}

/* Where the pointer is kept by which an indirect call or jump goes on; NULL for others. */
static app_pc pointer_of(instr_t *instr) {
  opnd_t target = instr_is_mbr(instr) ? instr_get_target(instr) : opnd_create_null();
  return opnd_is_rel_addr(target) || opnd_is_abs_addr(target) ? opnd_get_addr(target) : NULL;
}

/* A function of the program's own may be part of a loop that waits; of other modules' only those
 * that yield are. */
static bool may_be_called(struct code_walk *walk, app_pc function) {
  for (int i = 0; i < 2; i++) {
    if (!code_walk_decode(walk, function))
      return false;
    if (instr_is_mbr(&walk->instr)) {
      app_pc pointer = pointer_of(&walk->instr);
      return pointer != NULL && is_yielding_function(pointer);
    }
    if (instr_is_cti(&walk->instr))
      return true;
    function = walk->next; /* It may begin with a mark for indirect jumps. */
  }
  return true;
}

/* Goes on behind the branch, call or jump that was looked at last; false where that ends. */
static bool go_on(struct code_walk *walk, struct places *places, app_pc *pc) {
  instr_t *instr = &walk->instr;
  app_pc next = walk->next;
  if (instr_is_ubr(instr) || instr_is_cbr(instr)) {
    app_pc target = instr_get_branch_target_pc(instr);
    places->has_loop |= target <= *pc;
    add_place(places, target);
    if (instr_is_ubr(instr))
      return false;
    *pc = next;
    return true;
  }
  app_pc pointer = pointer_of(instr);
  bool returns = instr_is_call_direct(instr)
                     ? may_be_called(walk, instr_get_branch_target_pc(instr))
                     : instr_is_call(instr) && pointer != NULL && is_yielding_function(pointer);
  *pc = next;
  return returns;
}

static bool leads_to(struct code_walk *walk, struct places *places, app_pc low, app_pc high) {
  while (places->done < places->count) {
    app_pc pc = places->pc[places->done++];
    for (bool goes_on = true; goes_on;) {
      if ((pc >= low && pc < high) || places->has_loop)
        return true;
      if (!code_walk_decode(walk, pc) || !is_harmless(&walk->instr))
        break;
      if (instr_is_cti(&walk->instr))
        goes_on = go_on(walk, places, &pc);
      else
        pc = walk->next;
    }
  }
  return false;
}

bool loop_shape_is_near(struct code_walk *walk, instrlist_t *block) {
  struct places places = {.count = 0, .has_loop = false};
  instr_t *first = instrlist_first_app(block), *last = instrlist_last_app(block);
  if (first == NULL)
    return false;
  app_pc low = instr_get_app_pc(first), high = instr_get_app_pc(last), pc = high;
  if (!code_walk_decode(walk, pc))
    return false;
  high = walk->next;
  if (!is_harmless(&walk->instr))
    return false;
  pc = walk->next;
  if (!instr_is_cti(&walk->instr) || go_on(walk, &places, &pc))
    add_place(&places, pc);
  return leads_to(walk, &places, low, high);
}
