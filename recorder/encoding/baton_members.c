/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes turns: threads that come and go, in this process and its children. */
#include "baton_members.h"

#include "baton_limits.h"
#include "baton_queue.h"
#include "baton_tree.h"
#include "platform.h"
#include "recording.h"
#include "thread.h"

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
  member->lead_quarters = 4;
  baton_set_no_limits(thread);
  baton_lock();
  bool is_first = baton.first == NULL;
  append(member);
  member->cleared_at_end = baton.cleared_at_end;
  baton.cleared_at_end = 0;
  if (is_first)
    baton_tree_join(member);
  if (is_first && baton_tree_has_turn())
    baton_give(member);
  else if (is_first)
    baton_begin_idling(member->clock);
  else if (baton.holder != NULL)
    member->clock = baton.holder->clock;
  baton_look_soon();
  baton_unlock();
  __atomic_add_fetch(&baton.joined, 1, __ATOMIC_SEQ_CST);
  platform_wake(&baton.joined);
  baton_await_turn(thread, NULL);
  baton_await_gone(NULL);
}

void baton_makes_thread(uint64_t cleared_at_end) { baton.cleared_at_end = cleared_at_end; }

void baton_await_join(void) {
  int made = __atomic_add_fetch(&baton.made, 1, __ATOMIC_SEQ_CST), joined;
  /* The first has not been made. */
  while ((joined = __atomic_load_n(&baton.joined, __ATOMIC_ACQUIRE)) < made + 1)
    platform_wait(&baton.joined, joined, SIGNAL_LOOK_MS, NULL);
}

void baton_await_process(struct thread *thread, int32_t child) {
  if (!baton_tree_is())
    return;
  baton_tree_await_child(child);
  baton_look_at_once(thread);
}

void baton_leave(struct thread *thread) {
  struct baton_member *member = &thread->member;
  baton_lock();
  for (struct baton_member **at = &baton.first; *at != NULL; at = &(*at)->next) {
    if (*at == member) {
      *at = member->next;
      baton.worked_by_ended += member->counted + member->charged;
      break;
    }
  }
  /* Of a process that ends, the turn is given away when it is gone. */
  bool is_last = baton_tree_is() && (baton.first == NULL || recording.control->has_exited);
  if (member->has_baton && !is_last)
    baton_pass_from(member);
  baton_unlock();
}

void baton_continue_in_child(struct thread *thread) {
  baton.lock = platform_mutex_create();
  baton.first = baton.holder = &thread->member;
  baton.joined = 1;
  baton.made = 0;
  baton.leaving = 0;
  baton.lookout = NULL;
  baton.worked_by_ended = 0;
  thread->member.next = NULL;
  thread->member.counted = thread->member.charged = 0;
  thread->member.kernel = KERNEL_OUTSIDE;
  thread->member.has_baton = 1;
  baton_set_no_limits(thread);
  baton_tree_continue_in_child(&thread->member);
  if (!baton_tree_is())
    return;
  thread->member.has_baton = 0;
  baton_begin_idling(thread->member.clock);
}

void baton_await_turn_in_child(struct thread *thread) {
  if (!baton_tree_is())
    return;
  baton_await_turn(thread, NULL);
  baton_begin_turn(thread);
}

void baton_end_in_child(struct thread *thread) {
  thread->member.thread = NULL;
  baton_set_no_limits(thread);
}
