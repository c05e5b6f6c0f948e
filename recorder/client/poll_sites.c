/* SPDX-License-Identifier: Apache-2.0 */
#include "poll_sites.h"

#include "poll_entries.h"
#include "poll_rounds.h"
#include "polled_words.h"

/* Instructions that are looked at for one block's sake, and for one update's. */
#define STEPS_MAX 2000u
#define STEPS_MAX_OF_ENTRY 8000u

static void *search_lock;

void poll_sites_init(void) { search_lock = dr_mutex_create(); }

void poll_sites_after_fork(void) { search_lock = dr_mutex_create(); }

void poll_sites_exit(void) { dr_mutex_destroy(search_lock); }

static uint64_t place_of(app_pc pc) { return (uint64_t)(ptr_uint_t)pc; }

/* What an update says that comes before polling: which place the thread has. */
static void find_entry(void *drcontext, app_pc pc) {
  struct poll_entry entry;
  if (!poll_entry_find(drcontext, pc, STEPS_MAX_OF_ENTRY, &entry))
    return;
  if (entry.counts) {
    polled_words_expect(place_of(pc), SITE_COUNTS, false);
    return;
  }
  polled_words_expect(place_of(pc), SITE_TAKES_TURN, false);
  polled_words_expect(place_of(entry.look), SITE_POLLS | SITE_AWAITS_TURN, true);
  if (entry.set_up != NULL)
    polled_words_expect(place_of(entry.set_up), SITE_SETS_UP, true);
}

void poll_sites_find(void *drcontext, instrlist_t *block) {
  struct code_walk walk;
  opnd_t look;
  dr_mutex_lock(search_lock);
  code_walk_begin(&walk, drcontext, STEPS_MAX);
  for (instr_t *instr = instrlist_first_app(block); instr != NULL;
       instr = instr_get_next_app(instr)) {
    app_pc pc = instr_get_app_pc(instr);
    enum poll_kind kind = may_look(instr, &look) ? poll_rounds_find(&walk, pc) : POLLS_NOTHING;
    if (kind != POLLS_NOTHING)
      polled_words_expect(place_of(pc), kind == POLLS_LOCK ? SITE_TAKES_LOCK : SITE_POLLS, false);
    else if (poll_entry_may_be(instr))
      find_entry(drcontext, pc);
  }
  code_walk_end(&walk);
  dr_mutex_unlock(search_lock);
}
