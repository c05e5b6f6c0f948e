/* SPDX-License-Identifier: Apache-2.0 */
#include "baton_calls.h"

#include "baton.h"
#include "baton_tree.h"
#include "futex_table.h"
#include "platform.h"
#include "random_bytes.h"
#include "raw_system_call.h"
#include "readiness.h"
#include "recording.h"
#include "thread.h"
#include "virtual_time.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

/* Newer than the headers may be; programs do without. */
#define CALL_PIDFD_SEND_SIGNAL 424
#define CALL_FUTEX_WAITV 449
#define CALL_FUTEX_WAKE 454
#define CALL_FUTEX_WAIT 455
#define CALL_FUTEX_REQUEUE 456

/* What a system call takes beside its instructions. */
#define CALL_PRICE 2000u

/* Signals, or what other processes do, may come before a time that a thread waits for. */
static void is_among_others(void) { recording.area->is_among_others = 1; }

static void clear_at_end(struct thread *thread) {
  struct baton_member *member = &thread->member;
  if (!baton_is_alone())
    raw_system_call(SYS_set_tid_address, (uintptr_t)baton_leaves(), 0, 0);
  futex_table_abandon_locks(thread);
  if (member->cleared_at_end != 0)
    futex_table_clear(member->cleared_at_end);
  member->cleared_at_end = 0;
}

/* Of the arguments of clone3, struct clone_args. */
#define CLONE_CHILD_AT 16

/* It takes turns, too, or does what it does when it does. */
static void make_process(void) {
  if (recording.tree == NULL)
    is_among_others();
}

static void make_thread(const struct system_call *call) {
  uint64_t child = call->argument[3];
  size_t read;
  if (call->x86_64 == SYS_clone3)
    platform_read((void *)(uintptr_t)(call->argument[0] + CLONE_CHILD_AT), sizeof(child), &child,
                  &read);
  if ((call->flags & CLONE_THREAD) != 0)
    baton_makes_thread((call->flags & CLONE_CHILD_CLEARTID) != 0 ? child : 0);
  else
    make_process();
}

/* Threads have processors by number, as if they had been there ever since. */
static int64_t tell_processor(const struct thread *thread, const uint64_t *argument) {
  uint64_t allowed[16] = {0};
  raw_system_call(SYS_sched_getaffinity, 0, sizeof(allowed), (uintptr_t)allowed);
  uint32_t count = 0, processor = 0, node = 0;
  for (int i = 0; i < 16; i++) {
    for (uint64_t bits = allowed[i]; bits != 0; bits &= bits - 1)
      count++;
  }
  if (count > 0)
    processor = thread->id % count;
  if ((argument[0] != 0 && !platform_write(argument[0], &processor, sizeof(processor))) ||
      (argument[1] != 0 && !platform_write(argument[1], &node, sizeof(node))))
    return -EFAULT;
  return 0;
}

/* What differs from one recording to the next unless it is told here. */
static bool tells(struct thread *thread, const struct system_call *call, int64_t *result) {
  switch (call->x86_64) {
  case SYS_getrandom:
    *result = random_fill(call->argument[0], call->argument[1]);
    return true;
  case SYS_getcpu:
    *result = tell_processor(thread, call->argument);
    return true;
  case SYS_rseq: /* has the processor's number, too */
  case CALL_FUTEX_WAITV:
  case CALL_FUTEX_WAKE:
  case CALL_FUTEX_WAIT:
  case CALL_FUTEX_REQUEUE:
    *result = -ENOSYS;
    return true;
  default:
    return virtual_time_call(thread, call, result);
  }
}

static bool waits_at_futex(const uint64_t *argument) {
  switch (argument[1] & FUTEX_CMD_MASK) {
  case FUTEX_WAIT:
  case FUTEX_WAIT_BITSET:
  case FUTEX_WAIT_REQUEUE_PI:
  case FUTEX_LOCK_PI:
  case FUTEX_LOCK_PI2:
    return true;
  default:
    return false;
  }
}

static enum baton_call pause_until_signal(struct thread *thread, int64_t *result) {
  if (baton_is_alone())
    return CALL_BLOCKS;
  baton_wait(thread, BATON_FOR_EVER);
  *result = -EINTR;
  return CALL_IS_MADE;
}

enum baton_call baton_call(struct thread *thread, const struct system_call *call, int64_t *result) {
  enum baton_call how;
  baton_charge(thread, CALL_PRICE);
  baton_look(thread, call->x86_64 == SYS_sched_yield ? LEAD_NONE : LEAD_MEETING);
  if (tells(thread, call, result))
    return CALL_IS_MADE;
  if (readiness_call(thread, call, baton_is_alone(), &how, result))
    return how;
  switch (call->x86_64) {
  case SYS_futex:
    if (!futex_table_has(call->argument))
      return waits_at_futex(call->argument) ? CALL_GOES_OUTSIDE : CALL_GOES_ON;
    *result = futex_table_call(thread, call->argument);
    return CALL_IS_MADE;
  case SYS_sched_yield:
    *result = 0;
    return CALL_IS_MADE;
  case SYS_clone:
  case SYS_clone3:
    make_thread(call);
    return CALL_GOES_ON;
  case SYS_fork:
  case SYS_vfork:
    make_process();
    return CALL_GOES_ON;
  case SYS_setitimer:
  case SYS_alarm:
  case SYS_timer_create:
  case SYS_timerfd_create:
    is_among_others();
    return CALL_GOES_ON;
  case SYS_set_tid_address:
    thread->member.cleared_at_end = call->argument[0];
    return CALL_GOES_ON;
  case SYS_exit:
    clear_at_end(thread);
    return CALL_GOES_ON;
  case SYS_pause:
    return pause_until_signal(thread, result);
  case SYS_poll:
  case SYS_ppoll:
  case SYS_select:
  case SYS_pselect6:
  case SYS_epoll_pwait:
  case SYS_epoll_pwait2:
  case SYS_rt_sigsuspend:
  case SYS_rt_sigtimedwait:
  case SYS_msgrcv:
  case SYS_semop:
  case SYS_semtimedop:
  case SYS_flock:
  case SYS_mq_timedreceive:
    return baton_is_alone() ? CALL_BLOCKS : CALL_GOES_OUTSIDE;
  default:
    return CALL_GOES_ON;
  }
}

void baton_call_ends(struct thread *thread, const struct system_call *call, int64_t result) {
  if (result != 0 || baton_is_alone())
    return;
  switch (call->x86_64) {
  case SYS_kill:
  case SYS_rt_sigqueueinfo:
    baton_tree_sent_signal((int32_t)call->argument[0]);
    baton_sent_signal(thread, 0);
    break;
  case SYS_tkill:
    baton_sent_signal(thread, call->argument[0]);
    break;
  case SYS_tgkill:
  case SYS_rt_tgsigqueueinfo:
    baton_tree_sent_signal((int32_t)call->argument[0]);
    baton_sent_signal(thread, call->argument[1]);
    break;
  case CALL_PIDFD_SEND_SIGNAL:
    baton_tree_sent_signal(0);
    baton_sent_signal(thread, 0);
    break;
  default:
    break;
  }
}
