/* SPDX-License-Identifier: Apache-2.0 */
#include "baton_limits.h"

#include "baton_queue.h"
#include "region_of_interest.h"
#include "thread.h"

/* Words of a buffer for so many instructions, about. */
#define WORDS_OF(instructions) ((instructions) / 2)
#define LIMIT_NONE ((uint64_t *)UINTPTR_MAX)

/* What is executed between two looks at what others watch. */
#define WATCHED_EVERY_WORDS 512

/* Before the buffer is full, which moves the position. */
#define WORDS_BEFORE_END 256

/* Outside of the region the position goes on by a word for each instruction. */
static uint64_t *limit_behind(const struct thread *thread, uint64_t instructions) {
  uint64_t *at = *thread->position, *last = thread->guard - WORDS_BEFORE_END;
  uint64_t words = region_is_outside ? instructions : WORDS_OF(instructions);
  return words < (uint64_t)(last > at ? last - at : 0) ? at + words : last;
}

static void move_limit(uint64_t **limit, ptrdiff_t words) {
  if (*limit != LIMIT_NONE && *limit != NULL)
    *limit += words;
}

void baton_moved(struct thread *thread, ptrdiff_t words, bool is_lost) {
  if (is_lost && words < 0)
    baton_charge(thread, (uint64_t)-words * 2);
  move_limit(&thread->limits->quantum, words);
  move_limit(&thread->limits->meeting, words);
  move_limit(&thread->limits->pause, words);
}

/* It has to be seen where the region begins. */
static void limit_by_region(struct thread *thread) {
  uint64_t words = region_of_interest_look_in();
  /* Outside, what stands in the buffer is not counted yet. */
  uint64_t *from = region_is_outside ? thread->buffer : *thread->position;
  if (words < (uint64_t)(LIMIT_NONE - from) && from + words < thread->limits->quantum)
    thread->limits->quantum = from + words;
}

void baton_set_no_limits(struct thread *thread) {
  thread->limits->quantum = thread->limits->meeting = thread->limits->pause = LIMIT_NONE;
  limit_by_region(thread);
}

void baton_set_limits(struct thread *thread, const struct baton_member *first,
                      const struct baton_member *next) {
  struct baton_limits *limits = thread->limits;
  uint64_t clock = thread->member.clock;
  if (next == NULL) {
    baton_set_no_limits(thread);
    return;
  }
  uint64_t lead = baton_queue_ready_at(next) > clock ? baton_queue_ready_at(next) - clock : 0;
  uint64_t behind = clock > baton_queue_ready_at(next) ? clock - baton_queue_ready_at(next) : 0;
  limits->pause = *thread->position; /* it pays */
  limits->meeting =
      limit_behind(thread, baton_queue_until_meeting(&thread->member, baton_queue_ready_at(next)));
  uint64_t quantum = baton_queue_lead(&thread->member, LEAD_QUANTUM);
  limits->quantum = limit_behind(thread, lead + (behind < quantum ? quantum - behind : 0));
  if (baton_queue_has_watchers(first) && limits->quantum > *thread->position + WATCHED_EVERY_WORDS)
    limits->quantum = *thread->position + WATCHED_EVERY_WORDS;
  limit_by_region(thread);
}

void baton_look_at_once(struct thread *thread) {
  struct baton_limits *limits = thread->limits;
  limits->quantum = limits->meeting = limits->pause = NULL;
}
