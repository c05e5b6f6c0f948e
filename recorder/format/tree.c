/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include "process_lock.h"
#include "raw_system_call.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

/* Who has a signal sees it sooner, or never. */
#define LOOKS_MAX 400
#define LOOK_NS 50000

uint64_t tree_real_ns(void) {
  struct timespec now;
  raw_system_call(SYS_clock_gettime, CLOCK_MONOTONIC, (uintptr_t)&now, 0);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void tree_lock(struct tree *tree, int32_t process) { process_lock_take(&tree->lock, process); }

void tree_unlock(struct tree *tree) { process_lock_give(&tree->lock); }

static void wake(void *word) { raw_system_call(SYS_futex, (uintptr_t)word, FUTEX_WAKE, INT32_MAX); }

static struct tree_place *place_of(struct tree *tree, int32_t process) {
  for (uint32_t i = 0; i < tree->used; i++) {
    if (tree->place[i].process == process)
      return &tree->place[i];
  }
  return NULL;
}

struct tree_place *tree_join(struct tree *tree, int32_t process, int32_t parent,
                             struct tree_times times) {
  tree_lock(tree, process);
  struct tree_place *place = place_of(tree, 0);
  if (place == NULL && tree->used < TREE_PLACES_MAX)
    place = &tree->place[tree->used++];
  if (place != NULL) {
    *place = (struct tree_place){.process = process, .parent = parent, .times = times};
    tree->count++;
    if (tree->holder == 0 && tree->joined == 0)
      tree_claim(tree, place);
  }
  __atomic_add_fetch(&tree->joined, 1, __ATOMIC_SEQ_CST);
  tree_unlock(tree);
  wake(&tree->joined);
  return place;
}

/* Where nothing has been called since it looked, nothing is new but what comes from outside. */
static uint64_t asks_at(const struct tree *tree, const struct tree_place *place) {
  uint64_t at = place->times.ask_at;
  return at == TREE_NEVER || place->asked != tree->calls ? at : at + TREE_OTHERS_COME_AFTER;
}

static uint64_t least(uint64_t first, uint64_t second) { return first < second ? first : second; }

static uint64_t goes_on_at(const struct tree *tree, const struct tree_place *place) {
  return least(place->times.ready_at, least(place->times.until, asks_at(tree, place)));
}

uint64_t tree_others_at(const struct tree *tree, const struct tree_place *own) {
  uint64_t at = TREE_NEVER;
  for (uint32_t i = 0; i < tree->used; i++) {
    const struct tree_place *place = &tree->place[i];
    if (place->process != 0 && place != own)
      at = least(at, goes_on_at(tree, place));
  }
  return at;
}

uint64_t tree_others_ready_at(const struct tree *tree, const struct tree_place *own) {
  uint64_t at = TREE_NEVER;
  for (uint32_t i = 0; i < tree->used; i++) {
    const struct tree_place *place = &tree->place[i];
    if (place->process != 0 && place != own)
      at = least(at, place->times.ready_at);
  }
  return at;
}

/* What a place is chosen by: the least comes first. */
typedef uint64_t measure(const struct tree *tree, const struct tree_place *place);

static uint64_t looks_at(const struct tree *tree, const struct tree_place *place) {
  (void)tree;
  return place->has_asked ? TREE_NEVER : place->times.ask_at;
}

static uint64_t times_out_at(const struct tree *tree, const struct tree_place *place) {
  (void)tree;
  return place->times.until;
}

static struct tree_place *least_by(struct tree *tree, measure *of, uint64_t *at) {
  struct tree_place *best = NULL;
  *at = TREE_NEVER;
  for (uint32_t i = 0; i < tree->used; i++) {
    struct tree_place *place = &tree->place[i];
    uint64_t value = place->process == 0 ? TREE_NEVER : of(tree, place);
    if (value < *at) {
      best = place;
      *at = value;
    }
  }
  return best;
}

static bool meets_others(const struct tree *tree) {
  bool meets = false;
  for (uint32_t i = 0; i < tree->used; i++)
    meets |= tree->place[i].process != 0 && tree->place[i].meets_others;
  return meets;
}

/* Who is next, and at which place of the clock. */
static struct tree_place *next_of(struct tree *tree, uint64_t *at) {
  if (tree_others_ready_at(tree, NULL) != TREE_NEVER)
    return least_by(tree, goes_on_at, at);
  struct tree_place *next = least_by(tree, looks_at, at);
  if (next != NULL)
    *at = tree->clock;
  else if (!meets_others(tree))
    next = least_by(tree, times_out_at, at);
  return next;
}

static void give(struct tree *tree, struct tree_place *place) {
  tree->holder = (int32_t)(place - tree->place) + 1;
  __atomic_store_n(&place->has_turn, 1, __ATOMIC_RELEASE);
  wake(&place->has_turn);
}

static bool give_to_next(struct tree *tree) {
  uint64_t at;
  struct tree_place *next = next_of(tree, &at);
  tree->holder = 0;
  if (next == NULL) {
    if (tree->idle_since_ns == 0)
      tree->idle_since_ns = tree_real_ns();
    return false;
  }
  if (at > tree->clock)
    tree->clock = at;
  give(tree, next);
  return true;
}

bool tree_pass(struct tree *tree, struct tree_place *own, uint64_t clock) {
  own->has_turn = 0;
  tree->clock = clock;
  return give_to_next(tree);
}

bool tree_claim(struct tree *tree, struct tree_place *own) {
  if (tree->holder != 0)
    return false;
  tree->holder = (int32_t)(own - tree->place) + 1;
  own->has_turn = 1;
  return true;
}

void tree_runs(struct tree *tree) {
  tree->idle_since_ns = 0;
  for (uint32_t i = 0; i < tree->used; i++)
    tree->place[i].has_asked = 0;
}

void tree_take_from_long_call(struct tree *tree, uint64_t long_ns) {
  struct tree_place *holder = tree->holder == 0 ? NULL : &tree->place[tree->holder - 1];
  int32_t in_kernel = TREE_IN_KERNEL;
  if (holder == NULL) {
    tree->seen = 0;
  } else if (tree->seen != tree->holder || tree->seen_in_call != holder->calls) {
    tree->seen = holder->kernel == TREE_IN_KERNEL ? tree->holder : 0;
    tree->seen_in_call = holder->calls;
    tree->seen_since_ns = tree_real_ns();
  } else if (tree_real_ns() - tree->seen_since_ns >= long_ns &&
             __atomic_compare_exchange_n(&holder->kernel, &in_kernel, TREE_TURN_IS_TAKEN, false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    holder->meets_others = 1;
    holder->times = (struct tree_times){TREE_NEVER, TREE_NEVER, TREE_NEVER};
    tree_pass(tree, holder, tree->clock);
  }
}

void tree_await_look(struct tree *tree, int32_t process) {
  struct tree_place *place = place_of(tree, process);
  if (place == NULL || place->has_turn)
    return;
  const struct timespec time = {.tv_nsec = LOOK_NS};
  uint32_t looks = __atomic_load_n(&place->looks, __ATOMIC_ACQUIRE);
  for (int i = 0; i < LOOKS_MAX && __atomic_load_n(&place->looks, __ATOMIC_ACQUIRE) == looks; i++) {
    wake(&place->has_turn);
    raw_system_call(SYS_nanosleep, (uintptr_t)&time, 0, 0);
  }
}

void tree_end(struct tree *tree, int32_t process) {
  const int32_t launcher = -1;
  process_lock_forget(&tree->lock, process);
  struct tree_place *place = place_of(tree, process);
  if (place != NULL)
    tree_await_look(tree, place->parent);
  tree_lock(tree, launcher);
  for (uint32_t i = 0; i < TREE_WAITERS_MAX; i++) {
    if (tree->waiter[i].process == process)
      tree->waiter[i].process = 0;
  }
  bool has_turn = place != NULL && tree->holder == (int32_t)(place - tree->place) + 1;
  if (place != NULL) {
    *place = (struct tree_place){0};
    tree->count--;
  }
  tree->calls++; /* Who waits for its end looks. */
  if (has_turn)
    give_to_next(tree);
  tree_unlock(tree);
}
