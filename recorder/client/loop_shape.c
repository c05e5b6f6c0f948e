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

static bool sets_flags(instr_t *instr) {
  return (instr_get_eflags(instr, DR_QUERY_INCLUDE_ALL) & EFLAGS_WRITE_ARITH) != 0;
}

static bool reads_flags(instr_t *instr) {
  return (instr_get_eflags(instr, DR_QUERY_INCLUDE_ALL) & EFLAGS_READ_ARITH) != 0;
}

static bool stores_to_frame(instr_t *instr) {
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    if (may_be_frame(instr_get_dst(instr, i)))
      return true;
  }
  return false;
}

static bool reads_frame(instr_t *instr) {
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    if (may_be_frame(instr_get_src(instr, i)))
      return true;
  }
  return false;
}

void loop_shape_find_looks(instrlist_t *block, const instr_t *first, struct deciding_looks *looks) {
  opnd_t look;
  instr_t *instr = instrlist_last_app(block);
  looks->count = 0;
  if (instr == NULL || !instr_is_cbr(instr))
    return;
  register_set needed = 0;
  bool needs_flags = true, needs_frame = false;
  while (instr != first && (instr = instr_get_prev_app(instr)) != NULL) {
    bool is_needed = (needs_flags && sets_flags(instr)) ||
                     (registers_written(instr) & needed) != 0 ||
                     (needs_frame && stores_to_frame(instr));
    if (!is_needed)
      continue;
    if (may_look(instr, &look) && looks->count < LOOKS_MAX)
      looks->instr[looks->count++] = instr;
    needs_flags = (needs_flags && !sets_flags(instr)) || reads_flags(instr);
    needs_frame |= reads_frame(instr);
    needed |= registers_read(instr);
  }
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
