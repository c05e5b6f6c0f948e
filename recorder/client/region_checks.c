/* SPDX-License-Identifier: Apache-2.0 */
#include "region_checks.h"

#include "drmgr.h"

#include "region_of_interest.h"
#include "threads.h"

#include <stdbool.h>

#define PLACES_MAX 256u

static struct place {
  app_pc pc;
  bool begins, ends;
} place[PLACES_MAX];
static uint32_t places;

/* The call that the region lasts for, where it is a function's: which thread's, and where its stack
 * is behind it. */
static struct {
  const struct thread *thread;
  app_pc returns_to;
  reg_t stack_pointer;
} call;

static struct place *place_at(app_pc pc) {
  for (uint32_t i = 0; i < places; i++) {
    if (place[i].pc == pc)
      return &place[i];
  }
  return NULL;
}

static void add(app_pc pc, bool begins, bool ends) {
  struct place *known = place_at(pc);
  if (known == NULL && places < PLACES_MAX)
    place[places++] = (struct place){pc, begins, ends};
  else if (known != NULL)
    *known = (struct place){pc, known->begins || begins, known->ends || ends};
}

void region_checks_function(const char *name, app_pc address) {
  bool begins = region_of_interest_begins_at(name), ends = region_of_interest_ends_at(name);
  if (begins || ends)
    add(address, begins, ends && !begins);
}

void region_checks_renew_code(void) { dr_flush_region(NULL, ~(size_t)0); }

/* Whether it was not called from there before. */
static bool remember_call(const struct thread *thread, const dr_mcontext_t *context) {
  uint32_t before = places;
  size_t read;
  call.thread = thread;
  call.stack_pointer = context->xsp + sizeof(app_pc);
  if (dr_safe_read((void *)context->xsp, sizeof(call.returns_to), &call.returns_to, &read))
    add(call.returns_to, false, true);
  return places != before;
}

/* Called before a block that begins at a place. */
static void look(app_pc pc) {
  void *drcontext = dr_get_current_drcontext();
  struct thread *thread = thread_of(drcontext);
  const struct place *here = place_at(pc);
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_ALL};
  dr_get_mcontext(drcontext, &context);
  context.pc = pc;
  bool was_outside = region_is_outside, is_added = false;
  bool is_elsewhere =
      pc == call.returns_to && (thread != call.thread || context.xsp != call.stack_pointer);
  if (here->ends && !is_elsewhere)
    region_of_interest_end(thread);
  if (here->begins && region_of_interest_begin(thread) && region_of_interest_is_of_call())
    is_added = remember_call(thread, &context);
  if (region_is_outside != was_outside)
    region_checks_renew_code();
  else if (is_added)
    dr_flush_region(call.returns_to, 1);
  else
    return;
  dr_redirect_execution(&context);
}

static dr_emit_flags_t on_insertion(void *drcontext, void *tag, instrlist_t *block, instr_t *instr,
                                    bool for_trace, bool translating, void *user_data) {
  (void)tag, (void)for_trace, (void)translating, (void)user_data;
  instr_t *first = instrlist_first_app(block);
  if (places != 0 && first != NULL && drmgr_is_first_nonlabel_instr(drcontext, instr) &&
      place_at(instr_get_app_pc(first)) != NULL)
    dr_insert_clean_call(drcontext, block, instr, (void *)look, false, 1,
                         OPND_CREATE_INTPTR(instr_get_app_pc(first)));
  return DR_EMIT_DEFAULT;
}

void region_checks_init(void) {
  /* Before all else of a block: it may be made anew. */
  drmgr_priority_t priority = {sizeof(priority), "fencepost.region", NULL, NULL, -2000};
  bool is_ready = !region_of_interest_has_functions() ||
                  drmgr_register_bb_instrumentation_event(NULL, on_insertion, &priority);
  DR_ASSERT_MSG(is_ready, "the engine's extensions could not be started");
}

void region_checks_exit(void) {
  if (region_of_interest_has_functions())
    drmgr_unregister_bb_insertion_event(on_insertion);
}
