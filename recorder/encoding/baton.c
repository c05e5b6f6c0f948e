/* SPDX-License-Identifier: Apache-2.0 */
#include "baton.h"

#include "code_table.h"
#include "fields.h"
#include "platform.h"
#include "raw_words.h"
#include "record_format.h"
#include "recording.h"
#include "thread.h"

#include <string.h>

/* Words of a buffer for so many instructions, about. */
#define WORDS_OF(instructions) ((instructions) / 2)
#define LIMIT_NONE ((uint64_t *)UINTPTR_MAX)
#define SIGNAL_LOOK_MS 10

bool baton_is_passed;

static struct {
  void *lock;
  struct baton_member *first;
  struct baton_member *holder; /* NULL where all wait */
  volatile int joined;         /* threads that have come */
  int made;                    /* that were to come */
  uint64_t cleared_at_end;     /* of the one that comes next */
  volatile int leaving;        /* one that ends is not gone; the kernel clears it */
} baton;

void baton_init(void) {
  baton_is_passed = recording.area->one_order != 0;
  baton.lock = platform_mutex_create();
}

struct baton_member *baton_first(void) { return baton.first; }

static void lock(void) { platform_mutex_lock(baton.lock); }
static void unlock(void) { platform_mutex_unlock(baton.lock); }

static bool is_alone(void) { return baton.first != NULL && baton.first->next == NULL; }

uint64_t baton_clock(struct thread *thread) {
  struct baton_member *member = &thread->member;
  uint64_t encoded = thread->encoder.frame.position + thread->encoder.frame.instructions;
  member->clock += encoded - member->counted;
  member->counted = encoded;
  return member->clock;
}

void baton_charge(struct thread *thread, uint64_t instructions) {
  thread->member.clock += instructions;
}

static bool can_run(const struct baton_member *member) {
  return member->state == BATON_READY ||
         (member->state == BATON_WAITS && member->until != BATON_FOR_EVER);
}

/* The place of its clock from which it could go on. */
static uint64_t ready_at(const struct baton_member *member) {
  return member->state == BATON_WAITS && member->until > member->clock ? member->until
                                                                       : member->clock;
}

/* Who is next, `except` apart; NULL where nobody can run. */
static struct baton_member *next_of_all(const struct baton_member *except) {
  struct baton_member *best = NULL;
  for (struct baton_member *member = baton.first; member != NULL; member = member->next) {
    if (member != except && can_run(member) && (best == NULL || ready_at(member) < ready_at(best)))
      best = member;
  }
  return best;
}

static void give(struct baton_member *member) {
  baton.holder = member;
  if (member == NULL)
    return;
  if (member->state == BATON_WAITS) {
    member->clock = ready_at(member);
    member->end = BATON_TIMED_OUT;
    member->word = 0;
  }
  member->state = BATON_READY;
  __atomic_store_n(&member->has_baton, 1, __ATOMIC_RELEASE);
  platform_wake(&member->has_baton);
}

/* Somebody more can run: the holder, who may have had nobody to look for, looks soon. */
static void look_soon(void) {
  if (baton.holder == NULL)
    return;
  struct baton_limits *limits = baton.holder->thread->limits;
  limits->quantum = limits->meeting = limits->pause = NULL;
}

/* With the lock. */
static void pass_from(struct baton_member *member) {
  member->has_baton = 0;
  give(next_of_all(NULL));
}

/* Who reads the same words again and again waits, too: it is seen after few rounds, and the rest of
 * its quantum is only counted. */
#define SPIN_PERIOD_MAX 32
#define SPIN_ROUNDS 8
#define SPIN_WORDS 512

/* Before the buffer is full, which moves the position. */
#define WORDS_BEFORE_END 256

static uint64_t *limit_behind(const struct thread *thread, uint64_t instructions) {
  uint64_t *at = *thread->position, *last = thread->guard - WORDS_BEFORE_END;
  return WORDS_OF(instructions) < (uint64_t)(last > at ? last - at : 0)
             ? at + WORDS_OF(instructions)
             : last;
}

/* How far ahead the thread may be where threads meet. A turn that has been long need not be made
 * longer: those that are behind come first. */
static uint64_t meeting_lead(const struct baton_member *member) {
  uint64_t ran = member->counted - member->turn_began;
  return ran < LEAD_MEETING ? LEAD_MEETING - ran : 0;
}

/* After how many instructions it will be further ahead than that. */
static uint64_t until_meeting(const struct baton_member *member, uint64_t next) {
  int64_t behind = (int64_t)(next - member->clock), may_lead = (int64_t)meeting_lead(member);
  int64_t until = behind > may_lead ? behind : (behind + may_lead) / 2;
  return until > 0 ? (uint64_t)until : 0;
}

static void set_limits(struct thread *thread, const struct baton_member *next) {
  struct baton_limits *limits = thread->limits;
  uint64_t clock = thread->member.clock;
  if (next == NULL) {
    limits->quantum = limits->meeting = limits->pause = LIMIT_NONE;
    return;
  }
  uint64_t lead = ready_at(next) > clock ? ready_at(next) - clock : 0;
  uint64_t behind = clock > ready_at(next) ? clock - ready_at(next) : 0;
  limits->pause = *thread->position; /* it pays */
  limits->meeting = limit_behind(thread, until_meeting(&thread->member, ready_at(next)));
  limits->quantum =
      limit_behind(thread, lead + (behind < LEAD_QUANTUM ? LEAD_QUANTUM - behind : 0));
  if (thread->member.is_spinning && limits->quantum > *thread->position + SPIN_WORDS)
    limits->quantum = *thread->position + SPIN_WORDS;
}

static void tell_turn(struct thread *thread) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, thread->member.clock);
  fields_send_clocked(&fields, thread, EVENT_TURN, clock_advance());
}

/* Until the thread has the baton. A signal ends what it waits for. */
static void await_turn(struct thread *thread, void *where) {
  struct baton_member *member = &thread->member;
  while (__atomic_load_n(&member->has_baton, __ATOMIC_ACQUIRE) == 0) {
    bool waits = member->state == BATON_WAITS;
    bool is_signalled = platform_wait(&member->has_baton, 0, waits ? SIGNAL_LOOK_MS : 0, where);
    if (!is_signalled || !waits)
      continue;
    lock();
    if (member->state == BATON_WAITS) {
      member->state = BATON_READY;
      member->end = BATON_INTERRUPTED;
      member->word = 0;
      if (baton.holder == NULL)
        give(member);
      else
        look_soon();
    }
    unlock();
  }
}

/* Of a thread that has ended the engine must have nothing left when others go on: they may end the
 * process. */
static void await_gone(void *where) {
  int leaving;
  while ((leaving = __atomic_load_n(&baton.leaving, __ATOMIC_ACQUIRE)) != 0)
    platform_wait(&baton.leaving, leaving, SIGNAL_LOOK_MS, where);
}

volatile int *baton_leaves(void) {
  baton.leaving = 1;
  return &baton.leaving;
}

static void begin_turn(struct thread *thread) {
  tell_turn(thread);
  thread->member.turn_began = thread->member.counted;
  lock();
  set_limits(thread, next_of_all(&thread->member));
  unlock();
}

/* Who pauses again and again waits for another thread: it is asked less and less often. */
#define PAUSE_PRICE 64u
#define PAUSES_MAX 7u
#define PAUSE_ROUND_MAX 1000u

static void pay_pause(struct baton_member *member) {
  bool is_next = member->counted - member->paused_at < PAUSE_ROUND_MAX;
  member->pauses = !is_next ? 0 : member->pauses < PAUSES_MAX ? member->pauses + 1 : PAUSES_MAX;
  member->paused_at = member->counted;
  member->clock += PAUSE_PRICE << member->pauses;
}

static bool is_idle_round(const uint64_t *words, const uint64_t *to) {
  bool reads = false;
  for (; words < to; words += raw_words_of(words)) {
    if (word_is_marker(*words))
      return false;
    uint16_t flags = code_table_get((uint32_t)*words)->flags;
    if ((flags & BLOCK_STORES) != 0)
      return false;
    reads |= (flags & BLOCK_READS_DATA) != 0;
  }
  return reads && words == to;
}

static bool spins(const struct thread *thread) {
  const uint64_t *end = *thread->position;
  for (ptrdiff_t period = 1; period <= SPIN_PERIOD_MAX; period++) {
    ptrdiff_t words = period * SPIN_ROUNDS;
    if (end - words - period < thread->buffer)
      return false;
    if (memcmp(end - words, end - words - period, (size_t)words * sizeof(*end)) == 0)
      return is_idle_round(end - period, end);
  }
  return false;
}

static void pay_spinning(struct baton_member *member) {
  uint64_t ran = member->counted - member->looked_at;
  if (member->is_spinning && ran < LEAD_QUANTUM)
    member->clock += LEAD_QUANTUM - ran;
}

bool baton_is_due(struct thread *thread, enum baton_lead lead) {
  struct baton_member *member = &thread->member;
  if (is_alone())
    return false;
  member->is_spinning = lead == LEAD_QUANTUM && spins(thread);
  thread_drain(thread);
  baton_clock(thread);
  if (lead == LEAD_NONE)
    pay_pause(member);
  pay_spinning(member);
  member->looked_at = member->counted;
  uint64_t clock = member->clock;
  lock();
  struct baton_member *next = next_of_all(member);
  set_limits(thread, next);
  unlock();
  uint64_t may_lead = lead == LEAD_MEETING ? meeting_lead(member) : lead;
  return next != NULL && clock > ready_at(next) + may_lead;
}

void baton_hand_over(struct thread *thread, void *where) {
  lock();
  pass_from(&thread->member);
  unlock();
  await_turn(thread, where);
  await_gone(where);
  begin_turn(thread);
}

void baton_look(struct thread *thread, enum baton_lead lead) {
  if (baton_is_due(thread, lead))
    baton_hand_over(thread, NULL);
}

enum baton_end baton_wait(struct thread *thread, uint64_t until) {
  struct baton_member *member = &thread->member;
  thread_drain(thread);
  baton_clock(thread);
  lock();
  member->state = BATON_WAITS;
  member->until = until;
  member->end = BATON_WOKEN;
  pass_from(member);
  unlock();
  await_turn(thread, NULL);
  await_gone(NULL);
  begin_turn(thread);
  return member->end;
}

/* By the holder: who is woken goes on no earlier than who woke it. */
void baton_wake(struct baton_member *member, enum baton_end end) {
  lock();
  if (member->state == BATON_WAITS) {
    if (baton.holder != NULL && member->clock < baton.holder->clock)
      member->clock = baton.holder->clock;
    member->state = BATON_READY;
    member->end = end;
    member->word = 0;
    look_soon();
  }
  unlock();
}

void baton_step_outside(struct thread *thread) {
  thread_drain(thread);
  baton_clock(thread);
  lock();
  thread->member.state = BATON_OUTSIDE;
  pass_from(&thread->member);
  unlock();
}

void baton_step_inside(struct thread *thread) {
  struct baton_member *member = &thread->member;
  lock();
  if (member->state == BATON_OUTSIDE) {
    member->state = BATON_READY;
    if (baton.holder == NULL)
      give(member);
    else
      look_soon();
  }
  unlock();
  await_turn(thread, NULL);
  await_gone(NULL);
  begin_turn(thread);
}

static void append(struct baton_member *member) {
  struct baton_member **at = &baton.first;
  while (*at != NULL)
    at = &(*at)->next;
  *at = member;
}

void baton_join(struct thread *thread) {
  struct baton_member *member = &thread->member;
  member->thread = thread;
  member->state = BATON_READY;
  thread->limits->quantum = thread->limits->meeting = thread->limits->pause = LIMIT_NONE;
  lock();
  bool is_first = baton.first == NULL;
  append(member);
  member->cleared_at_end = baton.cleared_at_end;
  baton.cleared_at_end = 0;
  if (is_first)
    give(member);
  else if (baton.holder != NULL)
    member->clock = baton.holder->clock;
  look_soon();
  unlock();
  __atomic_add_fetch(&baton.joined, 1, __ATOMIC_SEQ_CST);
  platform_wake(&baton.joined);
  await_turn(thread, NULL);
  await_gone(NULL);
}

void baton_makes_thread(uint64_t cleared_at_end) { baton.cleared_at_end = cleared_at_end; }

void baton_await_join(void) {
  int made = __atomic_add_fetch(&baton.made, 1, __ATOMIC_SEQ_CST), joined;
  /* The first has not been made. */
  while ((joined = __atomic_load_n(&baton.joined, __ATOMIC_ACQUIRE)) < made + 1)
    platform_wait(&baton.joined, joined, SIGNAL_LOOK_MS, NULL);
}

void baton_leave(struct thread *thread) {
  struct baton_member *member = &thread->member;
  lock();
  for (struct baton_member **at = &baton.first; *at != NULL; at = &(*at)->next) {
    if (*at == member) {
      *at = member->next;
      break;
    }
  }
  if (member->has_baton)
    pass_from(member);
  unlock();
}

void baton_continue_in_child(struct thread *thread) {
  baton.lock = platform_mutex_create();
  baton.first = baton.holder = &thread->member;
  baton.joined = 1;
  baton.made = 0;
  baton.leaving = 0;
  thread->member.next = NULL;
  thread->member.counted = 0;
  thread->limits->quantum = thread->limits->meeting = thread->limits->pause = LIMIT_NONE;
}
