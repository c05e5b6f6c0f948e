/* SPDX-License-Identifier: Apache-2.0 */
#include "poll_sites.h"

#include "loop_shape.h"
#include "poll_entries.h"
#include "poll_rounds.h"
#include "polled_words.h"

/* Instructions that are looked at for one block's sake, without values, for one instruction's and
 * for one update's. */
#define STEPS_MAX_OF_SHAPE 100u
#define STEPS_MAX 4000u
#define STEPS_MAX_OF_UPDATE 8000u

/* Beginnings of blocks that have been looked at: engines make code anew for many reasons. What is
 * found once stays known. */
#define SEEN_MAX (1u << 16)

static void *search_lock;
static app_pc seen[SEEN_MAX];

void poll_sites_init(void) { search_lock = dr_mutex_create(); }

void poll_sites_after_fork(void) { search_lock = dr_mutex_create(); }

void poll_sites_exit(void) { dr_mutex_destroy(search_lock); }

static uint64_t place_of(app_pc pc) { return (uint64_t)(ptr_uint_t)pc; }

/* What an update says that comes before polling: which place the thread has. */
static void find_entry(void *drcontext, app_pc block, app_pc pc) {
  struct poll_entry entry;
  if (!poll_entry_find(drcontext, block, pc, STEPS_MAX_OF_UPDATE, &entry))
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

/* Of two that share a place, the other one is looked at again. */
static bool is_new(app_pc block) {
  app_pc *place = &seen[((uint64_t)(ptr_uint_t)block * 0x9e3779b97f4a7c15ull) >> 48];
  bool is_new = *place != block;
  *place = block;
  return is_new;
}

static void find_polls(struct code_walk *walk, app_pc block, const struct deciding_looks *looks) {
  for (uint32_t i = 0; i < looks->count; i++) {
    app_pc pc = instr_get_app_pc(looks->instr[i]);
    walk->steps = is_atomic_update(looks->instr[i]) ? STEPS_MAX_OF_UPDATE : STEPS_MAX;
    enum poll_kind kind = poll_rounds_find(walk, block, pc);
    if (kind != POLLS_NOTHING)
      polled_words_expect(place_of(pc), kind == POLLS_LOCK ? SITE_TAKES_LOCK : SITE_POLLS, false);
  }
}

static void look_at(void *drcontext, instrlist_t *block) {
  instr_t *first = loop_shape_first_harmless(block);
  struct code_walk walk;
  struct deciding_looks looks = {.count = 0};
  code_walk_begin(&walk, drcontext, STEPS_MAX_OF_SHAPE);
  if (first != NULL)
    loop_shape_find_looks(block, first, &looks);
  if (looks.count != 0 && loop_shape_is_near(&walk, block))
    find_polls(&walk, instr_get_app_pc(instrlist_first_app(block)), &looks);
  for (instr_t *instr = instrlist_first_app(block); instr != NULL;
       instr = instr_get_next_app(instr)) {
    app_pc pc = instr_get_app_pc(instr);
    if (poll_entry_may_be(instr) && !polled_words_know(place_of(pc)))
      find_entry(drcontext, instr_get_app_pc(instrlist_first_app(block)), pc);
  }
  code_walk_end(&walk);
}

void poll_sites_find(void *drcontext, instrlist_t *block) {
  instr_t *first = instrlist_first_app(block);
  dr_mutex_lock(search_lock);
  if (first != NULL && is_new(instr_get_app_pc(first)))
    look_at(drcontext, block);
  dr_mutex_unlock(search_lock);
}
