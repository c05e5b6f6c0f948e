/* SPDX-License-Identifier: Apache-2.0 */
/* Signals to threads that wait: they end what a thread waits for, or are what it waits for. */
#include "baton_members.h"

#include "platform.h"
#include "raw_system_call.h"
#include "thread.h"

#include <sys/syscall.h>
#include <time.h>

/* How long, and how often, a thread that waits may take to look; the second time it has certainly
 * begun to look after the signal came. */
#define LOOK_NS 50000
#define LOOKS_MAX 400
#define LOOKS_AWAITED 2
/* Who gets a signal of the process may block it, and then another gets it. */
#define ROUNDS_OF_PROCESS 2

enum baton_end baton_await_signals(struct thread *thread, uint64_t set, uint64_t until) {
  struct baton_member *member = &thread->member;
  member->awaits_signal = true;
  member->awaited = set;
  enum baton_end end = baton_wait(thread, until);
  member->awaits_signal = false;
  member->awaited = 0;
  return end;
}

static void end_wait(struct baton_member *member, enum baton_end end) {
  member->end = end;
  member->word = 0;
  baton_come_forward(member);
}

static bool has_awaited(const struct baton_member *member) {
  return member->awaited != 0 && platform_has_blocked_signal(member->thread, member->awaited);
}

void baton_see_signals(struct baton_member *own, bool is_interrupted) {
  baton_lock();
  if (is_interrupted && own->state == BATON_WAITS)
    end_wait(own, BATON_INTERRUPTED);
  for (struct baton_member *member = baton.first; member != NULL; member = member->next) {
    if (member->state == BATON_WAITS && has_awaited(member))
      end_wait(member, BATON_WOKEN);
  }
  baton_unlock();
}

static void await_looks(struct baton_member *member) {
  const struct timespec time = {.tv_nsec = LOOK_NS};
  int looks = member->looks;
  for (int i = 0; i < LOOKS_MAX && member->looks - looks < LOOKS_AWAITED; i++) {
    if (member->state != BATON_WAITS)
      return;
    platform_wake(&member->has_baton);
    raw_system_call(SYS_nanosleep, (uintptr_t)&time, 0, 0);
  }
}

void baton_sent_signal(struct thread *thread, uint64_t kernel_id) {
  for (int round = 0; round < (kernel_id == 0 ? ROUNDS_OF_PROCESS : 1); round++) {
    for (struct baton_member *member = baton.first; member != NULL; member = member->next) {
      if (member != &thread->member &&
          (kernel_id == 0 || platform_kernel_thread_id(member->thread) == kernel_id))
        await_looks(member);
    }
  }
  baton_see_signals(&thread->member, false);
}
