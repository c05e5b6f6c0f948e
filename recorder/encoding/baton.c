/* SPDX-License-Identifier: Apache-2.0 */
#include "baton.h"

#include "baton_limits.h"
#include "baton_long_call.h"
#include "baton_members.h"
#include "baton_queue.h"
#include "baton_tree.h"
#include "fields.h"
#include "platform.h"
#include "random_bytes.h"
#include "raw_system_call.h"
#include "record_format.h"
#include "recording.h"
#include "region_of_interest.h"
#include "spin_rounds.h"
#include "thread.h"

#include <sys/syscall.h>
#include <time.h>

#define NS_PER_MS 1000000ull

bool baton_is_passed;

struct baton_turns baton;

void baton_init(void) {
  baton_is_passed = recording.area->one_order != 0;
  baton.lock = platform_mutex_create();
}

bool baton_has(const struct thread *thread) { return thread->member.thread != NULL; }

struct baton_member *baton_first(void) { return baton.first; }

void baton_lock(void) { platform_mutex_lock(baton.lock); }
void baton_unlock(void) { platform_mutex_unlock(baton.lock); }

bool baton_is_alone(void) {
  return baton.first != NULL && baton.first->next == NULL && baton_tree_is_alone();
}

uint64_t baton_clock(struct thread *thread) {
  struct baton_member *member = &thread->member;
  uint64_t encoded = thread->encoder.frame.position + thread->encoder.frame.instructions;
  if (recording.area->real_time)
    member->clock = tree_real_ns() * BATON_INSTRUCTIONS_PER_NS;
  else
    member->clock += encoded - member->counted;
  member->counted = encoded;
  return member->clock;
}

static void charge(struct baton_member *member, uint64_t instructions) {
  member->clock += instructions;
  member->charged += instructions;
}

void baton_charge(struct thread *thread, uint64_t instructions) {
  charge(&thread->member, instructions);
}

uint64_t baton_worked(uint64_t kernel_id) {
  uint64_t worked = kernel_id == 0 ? baton.worked_by_ended : 0;
  for (struct baton_member *member = baton.first; member != NULL; member = member->next) {
    if (kernel_id == 0 || platform_kernel_thread_id(member->thread) == kernel_id)
      worked += member->counted + member->charged;
  }
  return worked;
}

void baton_give(struct baton_member *member) {
  baton.holder = member;
  baton.lookout = NULL;
  if (member->state == BATON_WAITS) {
    member->clock = baton_queue_ready_at(member);
    member->end = BATON_TIMED_OUT;
    member->word = 0;
  }
  member->state = BATON_READY;
  member->is_called = member->is_watching = false;
  __atomic_store_n(&member->has_baton, 1, __ATOMIC_RELEASE);
  platform_wake(&member->has_baton);
}

/* With the lock. */
static void run(struct baton_member *member) {
  if (baton_tree_is())
    baton_tree_runs();
  baton_give(member);
}

void baton_look_soon(void) {
  if (baton.holder != NULL)
    baton_look_at_once(baton.holder->thread);
}

bool baton_meets_others(void) {
  for (struct baton_member *member = baton.first; member != NULL; member = member->next) {
    if (member->state == BATON_OUTSIDE || (member->state == BATON_WAITS && member->is_ready))
      return true;
  }
  return recording.area->real_time || recording.area->is_among_others;
}

/* When all began to wait, by the real clock and by theirs; 0: a process of the tree does not. */
static uint64_t idle_since_ns(void) {
  return baton_tree_is() ? baton_tree_idle_since_ns() : baton.idle_since_ns;
}

static uint64_t idle_began_at(void) {
  return baton_tree_is() ? baton_tree_clock() : baton.idle_clock;
}

/* The clock while all wait. What takes less than a millisecond is nothing: it would be different
 * each time. */
static uint64_t idle_clock(void) {
  uint64_t since = idle_since_ns(), ns = since == 0 ? 0 : tree_real_ns() - since;
  return idle_began_at() + (ns < NS_PER_MS ? 0 : ns * BATON_INSTRUCTIONS_PER_NS);
}

void baton_begin_idling(uint64_t now) {
  baton.holder = NULL;
  baton.idle_clock = now;
  baton.idle_since_ns = tree_real_ns();
  baton.lookout = baton_queue_first_waiting(baton.first);
  if (baton.lookout != NULL)
    platform_wake(&baton.lookout->has_baton);
}

/* When the first can go on that is ready. */
static uint64_t first_ready_at(void) {
  struct baton_member *ready = baton_queue_first_ready(baton.first);
  uint64_t others = baton_tree_others_ready_at(),
           own = ready == NULL ? BATON_FOR_EVER : ready->clock;
  return own < others ? own : others;
}

/* Who can go on at `now`, or, where nobody is ready, at `time` at the latest. */
static struct baton_member *next_at(uint64_t now, uint64_t time) {
  uint64_t at = first_ready_at();
  if (at == BATON_FOR_EVER)
    return baton_queue_next_waiting(baton.first, now, time);
  /* Until that runs nothing changes that others ask for. */
  return baton_queue_next(baton.first, NULL, at > now ? at : now);
}

/* Among the processes of a tree, with the turn: a thread of this one runs, or it gives that away.
 */
static void go_on_in_tree(uint64_t now) {
  while (baton_tree_has_turn()) {
    struct baton_member *next = next_at(now, now);
    if (next != NULL && (first_ready_at() == BATON_FOR_EVER ||
                         baton_queue_ready_at(next) <= baton_tree_others_at())) {
      run(next);
      return;
    }
    if (next == NULL)
      baton_tree_asked_in_vain();
    baton_tree_pass(baton.first, now);
    now = baton_tree_clock();
  }
  baton_begin_idling(now);
}

/* With the lock. */
static void go_on(uint64_t now) {
  if (baton_tree_is()) {
    go_on_in_tree(now);
    return;
  }
  struct baton_member *next = next_at(now, baton_meets_others() ? now : BATON_FOR_EVER - 1);
  if (next != NULL)
    baton_give(next);
  else
    baton_begin_idling(now);
}

/* Likewise. */
void baton_pass_from(struct baton_member *member) {
  member->has_baton = 0;
  baton_queue_call_watchers(baton.first, member->clock);
  go_on(member->clock);
}

/* In other schedules than the first, a turn is a quarter to four times as long. */
static void draw_lead(struct baton_member *member) {
  member->lead_quarters = 4;
  if (recording.area->schedule <= 1)
    return;
  uint64_t word = random_word_of(recording.area->schedule, ++baton.draws);
  member->lead_quarters = 1u << word % 5;
}

static void tell_turn(struct thread *thread) {
  if (!thread->is_recorded)
    return;
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, thread->member.clock);
  fields_send_clocked(&fields, thread, EVENT_TURN, clock_advance());
}

/* Where this process has not the turn, or nobody has: somebody of it is there who can go on. */
static void come_forward_in_tree(uint64_t now) {
  baton_tree_looks();
  baton_tree_tell(baton.first);
  if (baton_tree_claim())
    go_on(now);
  else if (baton.lookout == NULL)
    baton.lookout = baton_queue_first_waiting(baton.first);
}

/* With the lock, of one that has become ready. */
static void come_forward(struct baton_member *member) {
  uint64_t now = baton.holder != NULL ? baton.holder->clock : idle_clock();
  if (member->clock < now)
    member->clock = now;
  member->state = BATON_READY;
  if (baton.holder != NULL)
    baton_look_soon();
  else if (baton_tree_is())
    come_forward_in_tree(now);
  else
    baton_give(member);
}

static void end_by_signal(struct baton_member *member) {
  baton_lock();
  if (member->state == BATON_WAITS) {
    member->end = BATON_INTERRUPTED;
    member->word = 0;
    come_forward(member);
  }
  baton_unlock();
}

/* All wait: looks whether somebody can go on, at first again soon. How long to wait then, or 0. */
#define LOOK_NS_MIN 50000ull
#define LOOK_NS_MAX (SIGNAL_LOOK_MS * NS_PER_MS)

/* All wait for each other, and have for long: who looks at the program should know. */
#define STUCK_NS (10 * 1000 * NS_PER_MS)
#define LOOKS_BEFORE_STUCK 256

static void say_if_stuck(void) {
  static const char text[] = "fencepost-record: all threads of the program wait for each other; "
                             "Ctrl-C ends it\n";
  baton_lock();
  bool is_stuck = baton.holder == NULL && baton.lookout == NULL && !baton_meets_others() &&
                  !baton.has_said_stuck && idle_since_ns() != 0 &&
                  tree_real_ns() - idle_since_ns() > STUCK_NS;
  baton.has_said_stuck |= is_stuck;
  baton_unlock();
  if (is_stuck)
    raw_system_call(SYS_write, 2, (uintptr_t)text, sizeof(text) - 1);
}

/* Who can go on while all wait, or how long to wait until the next look. */
static struct baton_member *next_of_idle(uint64_t *wait_ns) {
  uint64_t idle_ns = tree_real_ns() - idle_since_ns();
  uint64_t time = idle_began_at() + idle_ns * BATON_INSTRUCTIONS_PER_NS;
  struct baton_member *next = baton_queue_next_waiting(baton.first, idle_clock(), time);
  struct baton_member *first = baton_queue_first_timed(baton.first);
  *wait_ns = idle_ns / 4 < LOOK_NS_MIN ? LOOK_NS_MIN : idle_ns / 4;
  if (*wait_ns > LOOK_NS_MAX)
    *wait_ns = LOOK_NS_MAX;
  if (first != NULL && first->until > time &&
      (first->until - time) / BATON_INSTRUCTIONS_PER_NS < *wait_ns)
    *wait_ns = (first->until - time) / BATON_INSTRUCTIONS_PER_NS + 1;
  /* Timers are real: sleeps must not fall behind them. */
  if (next != NULL && recording.area->is_among_others && next->state == BATON_WAITS &&
      next->clock < time)
    next->clock = time;
  return next;
}

/* How long to wait where none can go on; 0 where one does. */
static uint64_t look_out_in_tree(void) {
  uint64_t wait_ns = LOOK_NS_MAX;
  if (baton_tree_has_turn()) {
    go_on(baton_tree_clock());
    return 0;
  }
  if (baton_tree_idle_since_ns() == 0 || !baton_tree_claim())
    return wait_ns;
  struct baton_member *next = next_of_idle(&wait_ns);
  if (next != NULL) {
    run(next);
    return 0;
  }
  baton_tree_asked_in_vain();
  baton_tree_pass(baton.first, baton_tree_clock());
  return wait_ns;
}

static uint64_t look_out(struct baton_member *member) {
  uint64_t wait_ns = 0;
  baton_lock();
  if (baton.holder == NULL && baton.lookout == member) {
    struct baton_member *next = NULL;
    if (baton_tree_is())
      wait_ns = look_out_in_tree();
    else
      next = next_of_idle(&wait_ns);
    if (next != NULL) {
      baton_give(next);
      wait_ns = 0;
    }
  }
  baton_unlock();
  return wait_ns;
}

static void sleep_briefly(uint64_t ns) {
  struct timespec time = {.tv_nsec = (long)ns};
  raw_system_call(SYS_nanosleep, (uintptr_t)&time, 0, 0);
}

/* Until the thread has the baton. A signal ends what it waits for. */
void baton_await_turn(struct thread *thread, void *where) {
  struct baton_member *member = &thread->member;
  uint64_t looked_at_ns = tree_real_ns();
  while (__atomic_load_n(&member->has_baton, __ATOMIC_ACQUIRE) == 0) {
    bool waits = member->state == BATON_WAITS, looks_out = baton.lookout == member, is_signalled;
    uint64_t wait_ns = looks_out ? look_out(member) : LOOK_NS_MAX;
    bool awaits_turn = looks_out && baton_tree_is() && baton_tree_idle_since_ns() == 0;
    volatile int *word = awaits_turn ? baton_tree_turn() : &member->has_baton;
    if (wait_ns == 0)
      continue;
    if (wait_ns < NS_PER_MS) {
      sleep_briefly(wait_ns);
      /* Without waiting: it is never so. */
      is_signalled = platform_wait(&member->has_baton, -1, 0, where);
    } else {
      uint32_t wait_ms = waits ? (uint32_t)(wait_ns / NS_PER_MS) : LONG_CALL_MS;
      is_signalled = platform_wait(word, 0, wait_ms, where);
    }
    if (waits && is_signalled) {
      end_by_signal(member);
    } else if (__atomic_load_n(&member->has_baton, __ATOMIC_ACQUIRE) == 0 &&
               tree_real_ns() > looked_at_ns + LONG_CALL_NS) {
      baton_take_from_long_call(waits);
      looked_at_ns = tree_real_ns();
    }
    baton_tree_looks();
    if (__atomic_add_fetch(&member->looks, 1, __ATOMIC_RELEASE) % LOOKS_BEFORE_STUCK == 0)
      say_if_stuck();
  }
}

/* Of a thread that has ended the engine must have nothing left when others go on: they may end the
 * process. */
void baton_await_gone(void *where) {
  int leaving;
  while ((leaving = __atomic_load_n(&baton.leaving, __ATOMIC_ACQUIRE)) != 0)
    platform_wait(&baton.leaving, leaving, SIGNAL_LOOK_MS, where);
}

volatile int *baton_leaves(void) {
  baton.leaving = 1;
  return &baton.leaving;
}

/* The other processes, as one. */
static struct baton_member *others_of_tree(const struct baton_member *member) {
  static struct baton_member others = {.state = BATON_READY};
  if (baton_tree_is_alone())
    return NULL;
  /* One may come of which nothing is known yet. */
  uint64_t at = baton_tree_others_at(), unknown = member->clock + TREE_OTHERS_COME_AFTER;
  others.clock = at < unknown ? at : unknown;
  return &others;
}

/* Who is next after the thread, in any process. */
static struct baton_member *next_after(struct baton_member *member) {
  struct baton_member *next = baton_queue_next(baton.first, member, member->clock);
  struct baton_member *others = others_of_tree(member);
  if (others != NULL && (next == NULL || others->clock < baton_queue_ready_at(next)))
    return others;
  return next;
}

void baton_begin_turn(struct thread *thread) {
  tell_turn(thread);
  thread->member.turn_began = thread->member.counted;
  draw_lead(&thread->member);
  baton_lock();
  baton_set_limits(thread, baton.first, next_after(&thread->member));
  baton_unlock();
}

/* Who pauses again and again waits for another thread: it is asked less and less often. */
#define PAUSE_PRICE 64u
#define PAUSES_MAX 7u
#define PAUSE_ROUND_MAX 1000u

static void pay_pause(struct baton_member *member) {
  bool is_next = member->counted - member->paused_at < PAUSE_ROUND_MAX;
  member->pauses = !is_next ? 0 : member->pauses < PAUSES_MAX ? member->pauses + 1 : PAUSES_MAX;
  member->paused_at = member->counted;
  charge(member, PAUSE_PRICE << member->pauses);
}

bool baton_is_due(struct thread *thread, enum baton_lead lead) {
  struct baton_member *member = &thread->member;
  if (baton_is_alone()) {
    baton_set_no_limits(thread);
    return false;
  }
  member->watched = lead == LEAD_MEETING ? 0 : spin_rounds_watch(thread, lead == LEAD_NONE);
  thread_drain(thread);
  baton_clock(thread);
  if (lead == LEAD_NONE)
    pay_pause(member);
  else if (member->watched != 0)
    charge(member, LEAD_QUANTUM);
  uint64_t clock = member->clock;
  baton_lock();
  baton_queue_call_watchers(baton.first, clock);
  struct baton_member *next = next_after(member);
  baton_set_limits(thread, baton.first, next);
  baton_unlock();
  if (next == NULL || next->is_called)
    return next != NULL;
  uint64_t may_lead =
      lead == LEAD_MEETING ? baton_queue_meeting_lead(member) : baton_queue_lead(member, lead);
  return clock > baton_queue_ready_at(next) + may_lead;
}

void baton_hand_over(struct thread *thread, void *where) {
  baton_lock();
  thread->member.is_watching = thread->member.watched != 0;
  baton_pass_from(&thread->member);
  baton_unlock();
  baton_await_turn(thread, where);
  baton_await_gone(where);
  baton_begin_turn(thread);
}

void baton_look(struct thread *thread, enum baton_lead lead) {
  if (baton_is_due(thread, lead))
    baton_hand_over(thread, NULL);
}

enum baton_end baton_await(struct thread *thread, baton_question *is_ready, uint64_t until) {
  struct baton_member *member = &thread->member;
  thread_drain(thread);
  baton_clock(thread);
  baton_lock();
  member->state = BATON_WAITS;
  member->until = until;
  member->is_ready = is_ready;
  member->ask_at = member->clock + LEAD_QUANTUM;
  member->end = BATON_WOKEN;
  baton_pass_from(member);
  baton_unlock();
  baton_await_turn(thread, NULL);
  baton_await_gone(NULL);
  baton_begin_turn(thread);
  return member->end;
}

enum baton_end baton_wait(struct thread *thread, uint64_t until) {
  return baton_await(thread, NULL, until);
}

/* By the holder: who is woken goes on no earlier than who woke it. */
void baton_wake(struct baton_member *member, enum baton_end end) {
  baton_lock();
  if (member->state == BATON_WAITS) {
    if (baton.holder != NULL && member->clock < baton.holder->clock)
      member->clock = baton.holder->clock;
    member->state = BATON_READY;
    member->end = end;
    member->word = 0;
    baton_look_soon();
  }
  baton_unlock();
}

void baton_enter_kernel(struct thread *thread, bool may_block) {
  struct baton_member *member = &thread->member;
  member->asleep_since_ns = may_block ? tree_real_ns() : 0;
  member->calls++;
  __atomic_store_n(&member->kernel, KERNEL_INSIDE, __ATOMIC_SEQ_CST);
  baton_tree_enters_kernel(thread);
}

void baton_step_outside(struct thread *thread) {
  struct baton_member *member = &thread->member;
  if (member->state == BATON_OUTSIDE)
    return;
  thread_drain(thread);
  baton_clock(thread);
  member->asleep_since_ns = tree_real_ns();
  baton_lock();
  member->state = BATON_OUTSIDE;
  baton_pass_from(member);
  baton_unlock();
}

/* Nothing else happened while it slept. */
static void charge_sleep(struct baton_member *member) {
  uint64_t ns = member->asleep_since_ns == 0 ? 0 : tree_real_ns() - member->asleep_since_ns;
  if (ns >= NS_PER_MS)
    member->clock += ns * BATON_INSTRUCTIONS_PER_NS;
  member->asleep_since_ns = 0;
}

static void step_inside(struct thread *thread, void *where) {
  struct baton_member *member = &thread->member;
  baton_lock();
  come_forward(member);
  baton_unlock();
  baton_await_turn(thread, where);
  baton_await_gone(where);
  baton_begin_turn(thread);
}

bool baton_is_away(const struct thread *thread) { return thread->member.state == BATON_OUTSIDE; }

/* Another process has taken the turn from it meanwhile. */
static void loses_turn(struct baton_member *member) {
  baton_lock();
  member->state = BATON_OUTSIDE;
  baton_pass_from(member);
  baton_unlock();
}

void baton_leave_call(struct thread *thread) {
  struct baton_member *member = &thread->member;
  int inside = KERNEL_INSIDE;
  if (__atomic_compare_exchange_n(&member->kernel, &inside, KERNEL_OUTSIDE, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST)) {
    if (baton_tree_leaves_kernel())
      loses_turn(member);
  } else if (inside == KERNEL_TAKES_LONG) {
    /* Until it has been taken. */
    baton_lock();
    baton_unlock();
    member->kernel = KERNEL_OUTSIDE;
  }
  if (baton_is_away(thread))
    thread->limits->quantum = thread->limits->meeting = thread->limits->pause = NULL;
}

void baton_come_back(struct thread *thread, bool has_timed_out, void *where) {
  bool was_inside = thread->member.kernel == KERNEL_INSIDE;
  baton_leave_call(thread);
  bool is_away = baton_is_away(thread);
  if (is_away ? has_timed_out : was_inside)
    charge_sleep(&thread->member);
  if (is_away)
    step_inside(thread, where);
}

/* Others that wait look for signals; that it sees it is not known of one that blocks it. */
#define SENT_LOOKS_MAX 20

void baton_sent_signal(struct thread *thread, uint64_t kernel_id) {
  for (struct baton_member *member = baton.first; member != NULL; member = member->next) {
    if (member == &thread->member || member->state != BATON_WAITS ||
        (kernel_id != 0 && platform_kernel_thread_id(member->thread) != kernel_id))
      continue;
    int looks = member->looks;
    for (int i = 0; i < SENT_LOOKS_MAX && member->looks == looks; i++) {
      platform_wake(&member->has_baton);
      sleep_briefly(LOOK_NS_MIN);
    }
  }
}
