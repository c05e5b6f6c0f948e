/* SPDX-License-Identifier: Apache-2.0 */
#include "baton_queue.h"

#include "platform.h"
#include "region_of_interest.h"

#include <stddef.h>

static bool can_run(const struct baton_member *member) {
  return member->state == BATON_READY ||
         (member->state == BATON_WAITS &&
          (member->until != BATON_FOR_EVER || member->is_ready != NULL));
}

uint64_t baton_queue_ready_at(const struct baton_member *member) {
  if (member->state != BATON_WAITS)
    return member->clock;
  uint64_t at = member->until;
  if (member->is_ready != NULL && member->ask_at < at)
    at = member->ask_at;
  return at > member->clock ? at : member->clock;
}

static bool has_changed(const struct watched_word *word) {
  uint64_t value = 0;
  size_t read;
  bool is_there = platform_read((const void *)(uintptr_t)word->address, word->bytes, &value, &read);
  return !is_there || value != word->value;
}

void baton_queue_call_watchers(struct baton_member *first, uint64_t now) {
  for (struct baton_member *member = first; member != NULL; member = member->next) {
    for (uint32_t i = 0; member->is_watching && i < member->watched; i++) {
      if (!has_changed(&member->watch[i]))
        continue;
      if (member->clock > now) { /* It was to look again only then. */
        member->charged -= member->clock - now;
        member->clock = now;
      }
      member->is_watching = false;
      member->is_called = true;
    }
  }
}

bool baton_queue_has_watchers(const struct baton_member *first) {
  while (first != NULL && !first->is_watching)
    first = first->next;
  return first != NULL;
}

static struct baton_member *first_of_all(struct baton_member *first,
                                         const struct baton_member *except) {
  struct baton_member *best = NULL;
  for (struct baton_member *member = first; member != NULL; member = member->next) {
    if (member != except && can_run(member) &&
        (best == NULL || baton_queue_ready_at(member) < baton_queue_ready_at(best)))
      best = member;
  }
  return best;
}

/* Who is asked for goes on no earlier than now: by then another has brought it about. */
static bool asks(struct baton_member *member, uint64_t now) {
  if (!member->is_ready(member->thread))
    return false;
  if (member->clock < now)
    member->clock = now;
  member->state = BATON_READY;
  member->end = BATON_WOKEN;
  return true;
}

struct baton_member *baton_queue_next(struct baton_member *first, const struct baton_member *except,
                                      uint64_t now) {
  for (;;) {
    struct baton_member *best = first_of_all(first, except);
    if (best == NULL || best->state != BATON_WAITS || best->is_ready == NULL ||
        best->ask_at > now || best->ask_at >= best->until || asks(best, now))
      return best;
    best->ask_at = now + LEAD_QUANTUM;
  }
}

struct baton_member *baton_queue_first_ready(struct baton_member *first) {
  struct baton_member *best = NULL;
  for (struct baton_member *member = first; member != NULL; member = member->next) {
    if (member->state == BATON_READY && (best == NULL || member->clock < best->clock))
      best = member;
  }
  return best;
}

struct baton_member *baton_queue_first_timed(struct baton_member *first) {
  struct baton_member *timed = NULL;
  for (struct baton_member *member = first; member != NULL; member = member->next) {
    if (member->state == BATON_WAITS && member->until != BATON_FOR_EVER &&
        (timed == NULL || member->until < timed->until))
      timed = member;
  }
  return timed;
}

struct baton_member *baton_queue_next_waiting(struct baton_member *first, uint64_t now,
                                              uint64_t time) {
  /* When it asks next does not depend on how often it has asked in vain meanwhile. */
  for (struct baton_member *member = first; member != NULL; member = member->next) {
    if (member->state == BATON_WAITS && member->is_ready != NULL && asks(member, now))
      return member;
  }
  struct baton_member *timed = baton_queue_first_timed(first);
  return timed != NULL && timed->until <= time ? timed : NULL;
}

struct baton_member *baton_queue_first_waiting(struct baton_member *first) {
  return first_of_all(first, NULL);
}

/* Outside of the region turns are so much longer: nobody will see their order. */
#define LEAD_TIMES_OUTSIDE 64u

uint64_t baton_queue_lead(const struct baton_member *member, uint64_t lead) {
  return lead * member->lead_quarters / 4 * (region_is_outside ? LEAD_TIMES_OUTSIDE : 1);
}

/* How far ahead the thread may be where threads meet. A turn that has been long need not be made
 * longer: those that are behind come first. */
uint64_t baton_queue_meeting_lead(const struct baton_member *member) {
  uint64_t ran = member->counted - member->turn_began,
           lead = baton_queue_lead(member, LEAD_MEETING);
  return ran < lead ? lead - ran : 0;
}

/* After how many instructions it will be further ahead than that. */
uint64_t baton_queue_until_meeting(const struct baton_member *member, uint64_t next) {
  int64_t behind = (int64_t)(next - member->clock),
          may_lead = (int64_t)baton_queue_meeting_lead(member);
  int64_t until = behind > may_lead ? behind : (behind + may_lead) / 2;
  return until > 0 ? (uint64_t)until : 0;
}
