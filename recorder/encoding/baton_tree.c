/* SPDX-License-Identifier: Apache-2.0 */
#include "baton_tree.h"

#include "baton_members.h"
#include "baton_queue.h"
#include "platform.h"
#include "raw_system_call.h"
#include "recording.h"
#include "thread.h"

#include <sys/syscall.h>
#include <sys/wait.h>

/* How long a child may take to come: its program starts under the engine. */
#define JOIN_MS_MAX 10000
#define JOIN_LOOK_MS 10

static struct tree_place *place;

bool baton_tree_is(void) { return place != NULL; }

bool baton_tree_is_alone(void) { return place == NULL || recording.tree->count <= 1; }

static void lock(void) { tree_lock(recording.tree, recording.process); }
static void unlock(void) { tree_unlock(recording.tree); }

static struct tree_times ready_at(uint64_t clock) {
  return (struct tree_times){clock, TREE_NEVER, TREE_NEVER};
}

static uint64_t least(uint64_t first, uint64_t second) { return first < second ? first : second; }

/* What others know of it from now on. */
static void tell(const struct baton_member *first) {
  struct tree_times times = ready_at(TREE_NEVER);
  for (const struct baton_member *member = first; member != NULL; member = member->next) {
    bool waits = member->state == BATON_WAITS, asks = waits && member->is_ready != NULL;
    if (member->state == BATON_READY)
      times.ready_at = least(times.ready_at, member->clock);
    if (asks)
      times.ask_at = least(times.ask_at, member->ask_at);
    if (waits && member->until != BATON_FOR_EVER)
      times.until = least(times.until, member->until);
  }
  place->times = times;
  place->meets_others = baton_meets_others();
  place->asked = recording.tree->calls;
}

void baton_tree_join(struct baton_member *first) {
  struct tree *tree = recording.tree;
  struct process_control *control = recording.control;
  if (tree == NULL)
    return;
  for (uint32_t i = 0; control->has_place && i < tree->used; i++) {
    if (tree->place[i].process == recording.process)
      place = &tree->place[i];
  }
  first->clock = control->has_place ? control->exec_clock : tree->clock;
  first->counted = control->has_place ? control->exec_position : 0;
  if (place == NULL)
    place = tree_join(tree, recording.process, control->parent, ready_at(first->clock));
  control->has_place = 1;
}

void baton_tree_continue_in_child(struct baton_member *first) {
  place = NULL;
  if (recording.tree == NULL)
    return;
  place = tree_join(recording.tree, recording.process, recording.control->parent,
                    ready_at(first->clock));
  recording.control->has_place = 1;
}

static bool has_ended(int32_t child) {
  siginfo_t information = {0};
  return raw_system_call_of_5(SYS_waitid, P_PID, (uintptr_t)child, (uintptr_t)&information,
                              WNOHANG | WNOWAIT | WEXITED | __WALL, 0) != 0 ||
         information.si_pid != 0;
}

void baton_tree_await_child(int32_t child) {
  struct tree *tree = recording.tree;
  for (int waited = 0; waited < JOIN_MS_MAX; waited += JOIN_LOOK_MS) {
    int joined = __atomic_load_n((int *)&tree->joined, __ATOMIC_SEQ_CST);
    const struct process_control *control = recording_of_process(child);
    if ((control != NULL && __atomic_load_n(&control->has_place, __ATOMIC_ACQUIRE)) ||
        has_ended(child))
      return;
    platform_wait((volatile int *)&tree->joined, joined, JOIN_LOOK_MS, NULL);
  }
}

void baton_tree_looks(void) {
  if (place != NULL)
    __atomic_add_fetch(&place->looks, 1, __ATOMIC_RELEASE);
}

/* As kill takes it: a group, or all, where it is not above 0. */
void baton_tree_sent_signal(int32_t to) {
  for (uint32_t i = 0; place != NULL && i < recording.tree->used; i++) {
    int32_t process = recording.tree->place[i].process;
    if (process != 0 && process != recording.process && (to <= 0 || to == process))
      tree_await_look(recording.tree, process);
  }
}

bool baton_tree_has_turn(void) {
  return place == NULL || __atomic_load_n(&place->has_turn, __ATOMIC_ACQUIRE) != 0;
}

uint64_t baton_tree_clock(void) { return recording.tree->clock; }

uint64_t baton_tree_others_at(void) {
  return baton_tree_is_alone() ? TREE_NEVER : tree_others_at(recording.tree, place);
}

uint64_t baton_tree_others_ready_at(void) {
  return baton_tree_is_alone() ? TREE_NEVER : tree_others_ready_at(recording.tree, place);
}

void baton_tree_runs(void) {
  lock();
  tree_runs(recording.tree);
  unlock();
}

void baton_tree_asked_in_vain(void) { place->has_asked = 1; }

void baton_tree_pass(struct baton_member *first, uint64_t clock) {
  lock();
  tell(first);
  if (place->has_turn)
    tree_pass(recording.tree, place, clock);
  unlock();
}

void baton_tree_tell(struct baton_member *first) {
  lock();
  tell(first);
  unlock();
}

bool baton_tree_claim(void) {
  lock();
  bool has_turn = tree_claim(recording.tree, place);
  unlock();
  return has_turn;
}

uint64_t baton_tree_idle_since_ns(void) { return recording.tree->idle_since_ns; }

volatile int *baton_tree_turn(void) { return &place->has_turn; }

/* Of a new process, and of a new image, it is awaited that they take turns. */
static bool makes_process(const struct thread *thread) {
  switch (thread->system_call.x86_64) {
  case SYS_fork:
  case SYS_vfork:
  case SYS_clone:
  case SYS_clone3:
  case SYS_execve:
  case SYS_execveat:
    return true;
  default:
    return false;
  }
}

void baton_tree_enters_kernel(const struct thread *thread) {
  if (place == NULL)
    return;
  recording.tree->calls++;
  place->calls++;
  if (makes_process(thread))
    recording.tree->clock = thread->member.clock; /* It begins there. */
  else
    __atomic_store_n(&place->kernel, TREE_IN_KERNEL, __ATOMIC_SEQ_CST);
}

bool baton_tree_leaves_kernel(void) {
  return place != NULL && __atomic_exchange_n(&place->kernel, TREE_OUTSIDE_KERNEL,
                                              __ATOMIC_SEQ_CST) == TREE_TURN_IS_TAKEN;
}

void baton_tree_take_from_long_call(uint64_t long_ns) {
  lock();
  tree_take_from_long_call(recording.tree, long_ns);
  unlock();
}
