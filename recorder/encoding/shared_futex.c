/* SPDX-License-Identifier: Apache-2.0 */
#include "shared_futex.h"

#include "baton.h"
#include "platform.h"
#include "recording.h"
#include "thread.h"

#include <errno.h>
#include <linux/futex.h>

/* A word, by what is mapped. */
struct shared_word {
  uint64_t device, inode, offset;
};

static void lock(void) { tree_lock(recording.tree, recording.process); }
static void unlock(void) { tree_unlock(recording.tree); }

static struct shared_word word_in(const struct kernel_map *map, uint64_t address) {
  return (struct shared_word){.device = kernel_map_device(map),
                              .inode = map->inode,
                              .offset = map->offset + (address - map->start)};
}

static bool is_at(const struct tree_waiter *waiter, struct shared_word word) {
  return waiter->process != 0 && !waiter->is_woken && waiter->device == word.device &&
         waiter->inode == word.inode && waiter->offset == word.offset;
}

/* Who has waited longest at the word. */
static struct tree_waiter *waiter_at(struct shared_word word, uint32_t bitset) {
  struct tree_waiter *first = NULL;
  for (uint32_t i = 0; i < TREE_WAITERS_MAX; i++) {
    struct tree_waiter *waiter = &recording.tree->waiter[i];
    if (is_at(waiter, word) && (waiter->bitset & bitset) != 0 &&
        (first == NULL || waiter->arrival < first->arrival))
      first = waiter;
  }
  return first;
}

static struct tree_waiter *add_waiter(struct shared_word word, uint32_t bitset) {
  struct tree *tree = recording.tree;
  struct tree_waiter *waiter = NULL;
  lock();
  for (uint32_t i = 0; i < TREE_WAITERS_MAX && waiter == NULL; i++) {
    if (tree->waiter[i].process == 0)
      waiter = &tree->waiter[i];
  }
  if (waiter != NULL)
    *waiter = (struct tree_waiter){.device = word.device,
                                   .inode = word.inode,
                                   .offset = word.offset,
                                   .arrival = ++tree->arrivals,
                                   .process = recording.process,
                                   .bitset = bitset};
  unlock();
  return waiter;
}

static bool is_woken(struct thread *thread) {
  return __atomic_load_n(&thread->member.shared_waiter->is_woken, __ATOMIC_ACQUIRE) != 0;
}

static int64_t wait_at(struct thread *thread, struct shared_word word, const uint64_t *argument,
                       uint32_t bitset, uint64_t until) {
  uint32_t value;
  size_t read;
  if (!platform_read((void *)(uintptr_t)argument[0], sizeof(value), &value, &read))
    return -EFAULT;
  if (value != (uint32_t)argument[2])
    return -EAGAIN;
  struct tree_waiter *waiter = add_waiter(word, bitset);
  if (waiter == NULL)
    return -ENOMEM;
  thread->member.shared_waiter = waiter;
  enum baton_end end = baton_await(thread, is_woken, until);
  bool was_woken = is_woken(thread);
  thread->member.shared_waiter = NULL;
  waiter->process = 0;
  if (was_woken)
    return 0;
  return end == BATON_TIMED_OUT ? -ETIMEDOUT : -EINTR;
}

static int64_t wake_at(struct shared_word word, uint32_t count, uint32_t bitset) {
  uint32_t woken = 0;
  struct tree_waiter *waiter;
  lock();
  while (woken < count && (waiter = waiter_at(word, bitset)) != NULL) {
    waiter->is_woken = 1;
    woken++;
  }
  recording.tree->calls++; /* They look. */
  unlock();
  return woken;
}

/* To a word that need not be in memory that is shared: nobody wakes there then. */
static uint32_t move_to(struct shared_word from, uint64_t address, uint32_t count) {
  struct kernel_map map;
  struct tree_waiter *waiter;
  uint32_t moved = 0;
  if (!kernel_map_at(address, &map))
    return 0;
  struct shared_word to = word_in(&map, address);
  lock();
  while (moved < count && (waiter = waiter_at(from, FUTEX_BITSET_MATCH_ANY)) != NULL) {
    waiter->device = to.device;
    waiter->inode = to.inode;
    waiter->offset = to.offset;
    moved++;
  }
  unlock();
  return moved;
}

static int64_t requeue(struct shared_word word, const uint64_t *argument, bool compares) {
  uint32_t value;
  size_t read;
  if (compares && !platform_read((void *)(uintptr_t)argument[0], sizeof(value), &value, &read))
    return -EFAULT;
  if (compares && value != (uint32_t)argument[5])
    return -EAGAIN;
  int64_t woken = wake_at(word, (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY);
  if (argument[4] != argument[0])
    woken += move_to(word, argument[4], (uint32_t)argument[3]);
  return woken;
}

bool shared_futex_has(const uint64_t *argument) {
  switch (argument[1] & FUTEX_CMD_MASK) {
  case FUTEX_WAIT:
  case FUTEX_WAIT_BITSET:
  case FUTEX_WAKE:
  case FUTEX_WAKE_BITSET:
  case FUTEX_REQUEUE:
  case FUTEX_CMP_REQUEUE:
    return recording.tree != NULL;
  default:
    return false;
  }
}

int64_t shared_futex_call(struct thread *thread, const struct kernel_map *map,
                          const uint64_t *argument, uint64_t until) {
  struct shared_word word = word_in(map, argument[0]);
  switch (argument[1] & FUTEX_CMD_MASK) {
  case FUTEX_WAIT:
    return wait_at(thread, word, argument, FUTEX_BITSET_MATCH_ANY, until);
  case FUTEX_WAIT_BITSET:
    return wait_at(thread, word, argument, (uint32_t)argument[5], until);
  case FUTEX_WAKE:
    return wake_at(word, (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY);
  case FUTEX_WAKE_BITSET:
    return wake_at(word, (uint32_t)argument[2], (uint32_t)argument[5]);
  default:
    return requeue(word, argument, (argument[1] & FUTEX_CMD_MASK) == FUTEX_CMP_REQUEUE);
  }
}
