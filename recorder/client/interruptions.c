/* SPDX-License-Identifier: Apache-2.0 */
#include "interruptions.h"

#include "dr_api.h"

#include "drmgr.h"

#include "interrupted_execution.h"
#include "recording.h"
#include "threads.h"

/* What stands in the instrumented code of a block, as labels. */
enum block_mark {
  MARK_ENTERS, /* behind it the position is advanced, and the execution's first words written */
  MARK_BEGUN,  /* the execution stands in the buffer */
  MARK_BEHIND, /* what belongs to the instruction before has been done */
  MARKS
};
static ptr_uint_t first_mark;

static void insert_mark(void *drcontext, instrlist_t *block, instr_t *where, enum block_mark mark) {
  instr_t *label = INSTR_CREATE_label(drcontext);
  instr_set_note(label, (void *)(first_mark + mark));
  instrlist_meta_preinsert(block, where, label);
}

void interruptions_mark_entry(void *drcontext, instrlist_t *block, instr_t *where) {
  insert_mark(drcontext, block, where, MARK_ENTERS);
}

void interruptions_mark_begun(void *drcontext, instrlist_t *block, instr_t *where) {
  insert_mark(drcontext, block, where, MARK_BEGUN);
}

void interruptions_mark_behind(void *drcontext, instrlist_t *block, instr_t *where) {
  insert_mark(drcontext, block, where, MARK_BEHIND);
}

static bool is_label(instr_t *instr, ptr_uint_t note) {
  return instr_is_label(instr) && instr_get_note(instr) == (void *)note;
}

/* Says of our code which instruction of the program it stands before, in the way that the engine
 * asks: it can then tell the program's state there. Left out is what has to be done to its end. */
static dr_emit_flags_t on_instrumented(void *drcontext, void *tag, instrlist_t *block,
                                       bool for_trace, bool translating) {
  (void)drcontext, (void)tag, (void)for_trace, (void)translating;
  app_pc next = NULL, entered = NULL;
  bool is_in_call = false;
  for (instr_t *instr = instrlist_last(block); instr != NULL; instr = instr_get_prev(instr)) {
    if (instr_is_app(instr)) {
      next = instr_get_app_pc(instr);
    } else if (is_label(instr, first_mark + MARK_BEHIND)) {
      next = NULL;
    } else if (is_label(instr, first_mark + MARK_BEGUN)) {
      entered = next;
      next = NULL;
    } else if (is_label(instr, first_mark + MARK_ENTERS)) {
      next = entered;
    } else if (is_label(instr, DR_NOTE_CALL_SEQUENCE_END)) {
      is_in_call = true;
    } else if (is_label(instr, DR_NOTE_CALL_SEQUENCE_START)) {
      is_in_call = false;
    } else if (!is_in_call && !instr_is_label(instr) && next != NULL &&
               instr_get_app_pc(instr) == NULL) {
      instr_set_translation(instr, next);
    }
  }
  return DR_EMIT_DEFAULT;
}

/* Whether an instruction may have been done in part. */
static bool has_parts(instr_t *instr) {
  return instr_is_rep_string_op(instr) || instr_is_gather(instr) || instr_is_scatter(instr);
}

/* Where in a fragment's code a thread stands. */
struct place {
  instr_t *instr;   /* that comes next; NULL where there is none */
  app_pc before;    /* the program's last instruction before it */
  bool is_entering; /* the block's execution is being written to the buffer */
  bool is_begun;    /* … stands there */
  bool is_in_call;  /* of a function of ours, or on the way there or back */
  bool has_called;  /* such a call is over, and the block not begun: a wrapped function's */
};

static void pass_label(struct place *place, instr_t *label) {
  if (is_label(label, first_mark + MARK_ENTERS)) {
    place->is_entering = true;
  } else if (is_label(label, first_mark + MARK_BEGUN)) {
    place->is_entering = false;
    place->is_begun = true;
  } else if (is_label(label, DR_NOTE_CALL_SEQUENCE_START)) {
    place->is_in_call = true;
  } else if (is_label(label, DR_NOTE_CALL_SEQUENCE_END)) {
    place->is_in_call = false;
    place->has_called |= !place->is_begun;
  }
}

/* The place at `pc`, of the code that begins at `at`. */
static struct place place_at(void *drcontext, instrlist_t *code, const byte *at, const byte *pc) {
  struct place place = {.instr = instrlist_first(code)};
  for (; place.instr != NULL; place.instr = instr_get_next(place.instr)) {
    int length = instr_length(drcontext, place.instr);
    if (at >= pc && length != 0)
      break;
    at += length;
    if (instr_is_app(place.instr))
      place.before = instr_get_app_pc(place.instr);
    else
      pass_label(&place, place.instr);
  }
  if (at != pc)
    place.instr = NULL;
  return place;
}

/* Whether everything that belongs to the program's last instruction has been done. */
static bool is_behind(const struct place *place) {
  for (instr_t *instr = place->instr; instr != NULL && !instr_is_app(instr);
       instr = instr_get_next(instr)) {
    if (is_label(instr, first_mark + MARK_BEHIND))
      return false;
  }
  return true;
}

/* Whether the thread may leave the code there and go on with the program's next instruction: what
 * is left out of our code in front of that one is done again, and so may be what of it has been
 * done.
 */
static bool can_leave(const struct place *place) {
  if (place->instr == NULL || place->is_entering || place->is_in_call ||
      instr_get_app_pc(place->instr) == NULL)
    return false;
  /* A wrapped function's call must not be told of twice. */
  if (place->has_called && place->before == NULL)
    return false;
  /* Behind a conditional jump stands the engine's own, for where that is not taken. */
  if (instr_is_app(place->instr))
    return instr_get_app_pc(place->instr) != place->before && !has_parts(place->instr);
  return is_behind(place);
}

static bool count(bool can_leave) {
  __atomic_add_fetch(&recording.control->stops, 1, __ATOMIC_RELAXED);
  if (!can_leave)
    __atomic_add_fetch(&recording.control->stops_refused, 1, __ATOMIC_RELAXED);
  return can_leave;
}

/* The engine asks whether a thread that it has stopped may leave the code cache, and if not, lets
 * it run on and asks again, with all other threads standing still; with `will_leave` it does.
 * Interrupts come when a slow instruction ends, so a thread in a loop may never be met right before
 * an instruction of the program: nearly all of our code must be a place to leave. */
static bool on_translation(void *drcontext, bool will_leave, dr_restore_state_info_t *information) {
  const dr_fault_fragment_info_t *fragment = &information->fragment_info;
  struct thread *thread = thread_of(drcontext);
  if (thread == NULL)
    return true;
  if (drcontext == dr_get_current_drcontext()) {
    /* What a thread asks of itself are faults, which come to signals.c, but for a write to code of
     * its own (engine/patches/modified_code.patch). */
    if (will_leave && fragment->cache_start_pc == NULL && fragment->tag != NULL)
      interrupt_block(thread, (uint64_t)(ptr_uint_t)information->mcontext->pc);
    return true;
  }
  thread->stopped_at = 0;
  if (fragment->cache_start_pc == NULL || !information->raw_mcontext_valid)
    return true;
  if (!will_leave && thread_holds_lock(thread))
    return count(false);
  if (fragment->ilist == NULL)
    return will_leave || count(false);
  struct place place =
      place_at(drcontext, fragment->ilist, fragment->cache_start_pc, information->raw_mcontext->pc);
  uint64_t pc = (uint64_t)(ptr_uint_t)information->mcontext->pc;
  if (will_leave) {
    if (place.is_begun)
      interrupt_block(thread, pc);
    return true;
  }
  /* In another thread's stead the buffer cannot be emptied. */
  bool has_room = interruption_has_room(thread);
  if (!count(can_leave(&place) && (has_room || !place.is_begun)))
    return false;
  if (place.is_begun)
    thread->stopped_at = pc;
  return true;
}

void interruptions_init(void) {
  first_mark = drmgr_reserve_note_range(MARKS);
  bool is_ready = first_mark != DRMGR_NOTE_NONE &&
                  drmgr_register_bb_instru2instru_event(on_instrumented, NULL) &&
                  drmgr_register_restore_state_ex_event(on_translation);
  DR_ASSERT_MSG(is_ready, "the engine's translations cannot be followed");
}

void interruptions_exit(void) {
  drmgr_unregister_restore_state_ex_event(on_translation);
  drmgr_unregister_bb_instru2instru_event(on_instrumented);
}
