/* SPDX-License-Identifier: Apache-2.0 */
#include "futex_table.h"

#include "baton.h"
#include "kernel_maps.h"
#include "platform.h"
#include "raw_system_call.h"
#include "shared_futex.h"
#include "thread.h"
#include "virtual_time.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

static uint64_t arrivals;

static bool read_word(uint64_t address, uint32_t *value) {
  size_t read;
  return platform_read((void *)(uintptr_t)address, sizeof(*value), value, &read);
}

static int64_t futex_wait(struct thread *thread, uint64_t word, uint32_t expected, uint32_t bitset,
                          uint64_t until) {
  struct baton_member *member = &thread->member;
  uint32_t value;
  if (!read_word(word, &value))
    return -EFAULT;
  if (value != expected)
    return -EAGAIN;
  member->word = word;
  member->bitset = bitset;
  member->arrival = ++arrivals;
  switch (baton_wait(thread, until)) {
  case BATON_TIMED_OUT:
    return -ETIMEDOUT;
  case BATON_INTERRUPTED:
    return -EINTR;
  default:
    return 0;
  }
}

/* Who has waited longest at the word. */
static struct baton_member *waiter_at(uint64_t word, uint32_t bitset) {
  struct baton_member *first = NULL;
  for (struct baton_member *member = baton_first(); member != NULL; member = member->next) {
    if (member->word == word && (member->bitset & bitset) != 0 &&
        (first == NULL || member->arrival < first->arrival))
      first = member;
  }
  return first;
}

static int64_t futex_wake(uint64_t word, uint32_t count, uint32_t bitset) {
  uint32_t woken = 0;
  struct baton_member *member;
  while (woken < count && (member = waiter_at(word, bitset)) != NULL) {
    baton_wake(member, BATON_WOKEN);
    woken++;
  }
  return woken;
}

static int64_t futex_requeue(const uint64_t *argument, bool compares) {
  uint32_t value, moved = 0;
  if (compares && !read_word(argument[0], &value))
    return -EFAULT;
  if (compares && value != (uint32_t)argument[5])
    return -EAGAIN;
  int64_t woken = futex_wake(argument[0], (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY);
  struct baton_member *member;
  while (argument[4] != argument[0] && moved < (uint32_t)argument[3] &&
         (member = waiter_at(argument[0], FUTEX_BITSET_MATCH_ANY)) != NULL) {
    member->word = argument[4];
    moved++;
  }
  return woken + moved;
}

static uint32_t operated(uint32_t operation, uint32_t old) {
  uint32_t argument = (uint32_t)((int32_t)(operation << 8) >> 20);
  if ((operation >> 28 & FUTEX_OP_OPARG_SHIFT) != 0)
    argument = 1u << (argument & 31);
  switch (operation >> 28 & 7) {
  case FUTEX_OP_SET:
    return argument;
  case FUTEX_OP_ADD:
    return old + argument;
  case FUTEX_OP_OR:
    return old | argument;
  case FUTEX_OP_ANDN:
    return old & ~argument;
  default:
    return old ^ argument;
  }
}

static bool compared(uint32_t operation, uint32_t old) {
  int32_t value = (int32_t)old, with = (int32_t)(operation << 20) >> 20;
  switch (operation >> 24 & 15) {
  case FUTEX_OP_CMP_EQ:
    return value == with;
  case FUTEX_OP_CMP_NE:
    return value != with;
  case FUTEX_OP_CMP_LT:
    return value < with;
  case FUTEX_OP_CMP_LE:
    return value <= with;
  case FUTEX_OP_CMP_GT:
    return value > with;
  default:
    return value >= with;
  }
}

static int64_t futex_wake_operation(const uint64_t *argument) {
  uint32_t old, operation = (uint32_t)argument[5];
  if (!read_word(argument[4], &old))
    return -EFAULT;
  uint32_t new = operated(operation, old);
  if (!platform_write(argument[4], &new, sizeof(new)))
    return -EFAULT;
  int64_t woken = futex_wake(argument[0], (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY);
  if (compared(operation, old))
    woken += futex_wake(argument[4], (uint32_t)argument[3], FUTEX_BITSET_MATCH_ANY);
  return woken;
}

static uint32_t kernel_id(const struct thread *thread) {
  return (uint32_t)platform_kernel_thread_id(thread);
}

/* A mutex with priority inheritance: its word is its owner's id. */
static int64_t futex_lock(struct thread *thread, uint64_t word, uint64_t until, bool tries) {
  uint32_t value, own = kernel_id(thread);
  for (;;) {
    if (!read_word(word, &value))
      return -EFAULT;
    if ((value & FUTEX_TID_MASK) == 0) {
      value = own | (value & FUTEX_OWNER_DIED) |
              (waiter_at(word, FUTEX_BITSET_MATCH_ANY) != NULL ? FUTEX_WAITERS : 0);
      return platform_write(word, &value, sizeof(value)) ? 0 : -EFAULT;
    }
    if ((value & FUTEX_TID_MASK) == own)
      return -EDEADLK;
    if (tries)
      return -EAGAIN;
    value |= FUTEX_WAITERS;
    if (!platform_write(word, &value, sizeof(value)))
      return -EFAULT;
    int64_t result = futex_wait(thread, word, value, FUTEX_BITSET_MATCH_ANY, until);
    if (result != 0)
      return result;
    if (read_word(word, &value) && (value & FUTEX_TID_MASK) == own)
      return 0;
  }
}

static int64_t futex_unlock(struct thread *thread, uint64_t word) {
  uint32_t value;
  if (!read_word(word, &value))
    return -EFAULT;
  if ((value & FUTEX_TID_MASK) != kernel_id(thread))
    return -EPERM;
  struct baton_member *next = waiter_at(word, FUTEX_BITSET_MATCH_ANY);
  value = next == NULL ? 0 : kernel_id(next->thread);
  if (next != NULL)
    baton_wake(next, BATON_WOKEN);
  if (waiter_at(word, FUTEX_BITSET_MATCH_ANY) != NULL)
    value |= FUTEX_WAITERS;
  return platform_write(word, &value, sizeof(value)) ? 0 : -EFAULT;
}

static bool waits_until(struct thread *thread, const uint64_t *argument, bool is_absolute,
                        uint64_t *until) {
  uint64_t ns;
  *until = BATON_FOR_EVER;
  if (argument[3] == 0)
    return true;
  if (!virtual_time_read(argument[3], &ns))
    return false;
  bool is_real =
      (argument[1] & FUTEX_CLOCK_REALTIME) != 0 || (argument[1] & FUTEX_CMD_MASK) == FUTEX_LOCK_PI;
  *until = is_absolute ? virtual_time_at(thread, ns, is_real ? CLOCK_REALTIME : CLOCK_MONOTONIC)
                       : virtual_time_in(thread, ns);
  return true;
}

/* The mapping of a word that other processes may have, too. */
static bool is_shared(const uint64_t *argument, struct kernel_map *map) {
  return (argument[1] & FUTEX_PRIVATE_FLAG) == 0 && kernel_map_at(argument[0], map) &&
         map->is_shared;
}

bool futex_table_has(const uint64_t *argument) {
  struct kernel_map map;
  return !is_shared(argument, &map) || shared_futex_has(argument);
}

int64_t futex_table_call(struct thread *thread, const uint64_t *argument) {
  uint64_t until = BATON_FOR_EVER;
  uint32_t command = argument[1] & FUTEX_CMD_MASK;
  bool is_timed = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ||
                  command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
  if (is_timed && !waits_until(thread, argument, command != FUTEX_WAIT, &until))
    return -EFAULT;
  struct kernel_map map;
  if (is_shared(argument, &map))
    return shared_futex_call(thread, &map, argument, until);
  switch (command) {
  case FUTEX_WAIT:
    return futex_wait(thread, argument[0], (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY, until);
  case FUTEX_WAIT_BITSET:
    return futex_wait(thread, argument[0], (uint32_t)argument[2], (uint32_t)argument[5], until);
  case FUTEX_WAKE:
    return futex_wake(argument[0], (uint32_t)argument[2], FUTEX_BITSET_MATCH_ANY);
  case FUTEX_WAKE_BITSET:
    return futex_wake(argument[0], (uint32_t)argument[2], (uint32_t)argument[5]);
  case FUTEX_REQUEUE:
    return futex_requeue(argument, false);
  case FUTEX_CMP_REQUEUE:
    return futex_requeue(argument, true);
  case FUTEX_WAKE_OP:
    return futex_wake_operation(argument);
  case FUTEX_LOCK_PI:
  case FUTEX_LOCK_PI2:
    return futex_lock(thread, argument[0], until, false);
  case FUTEX_TRYLOCK_PI:
    return futex_lock(thread, argument[0], until, true);
  case FUTEX_UNLOCK_PI:
    return futex_unlock(thread, argument[0]);
  default:
    return -ENOSYS;
  }
}

void futex_table_clear(uint64_t word) {
  int32_t none = 0;
  if (platform_write(word, &none, sizeof(none)))
    futex_wake(word, UINT32_MAX, FUTEX_BITSET_MATCH_ANY);
}

/* Locks that the thread held and that say so to the next one: as the kernel walks the list. */
static void abandon(uint64_t word, uint32_t owner) {
  uint32_t value;
  if (!read_word(word, &value) || (value & FUTEX_TID_MASK) != owner)
    return;
  uint32_t left = (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
  if (platform_write(word, &left, sizeof(left)) && (value & FUTEX_WAITERS) != 0)
    futex_wake(word, 1, FUTEX_BITSET_MATCH_ANY);
}

#define IS_PI 1ull /* in a pointer of the list */

static uint64_t link_at(uint64_t address) {
  uint64_t link = 0;
  size_t read;
  return platform_read((void *)(uintptr_t)address, sizeof(link), &link, &read) ? link & ~IS_PI : 0;
}

void futex_table_abandon_locks(const struct thread *thread) {
  struct robust_list_head head, *at = NULL;
  size_t bytes = 0, read;
  raw_system_call(SYS_get_robust_list, 0, (uintptr_t)&at, (uintptr_t)&bytes);
  if (at == NULL || !platform_read(at, sizeof(head), &head, &read))
    return;
  uint64_t offset = (uint64_t)head.futex_offset, pending = (uint64_t)head.list_op_pending & ~IS_PI;
  uint64_t lock = (uint64_t)head.list.next & ~IS_PI;
  for (int i = 0; i < ROBUST_LIST_LIMIT && lock != 0 && lock != (uint64_t)at; i++) {
    uint64_t next = link_at(lock);
    if (lock != pending)
      abandon(lock + offset, kernel_id(thread));
    lock = next;
  }
  if (pending != 0)
    abandon(pending + offset, kernel_id(thread));
}
