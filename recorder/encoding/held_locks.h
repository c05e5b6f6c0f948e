/* SPDX-License-Identifier: Apache-2.0 */
/* Which locks a thread holds where its record has a head, and which of them the record knows. */
#ifndef HELD_LOCKS_H
#define HELD_LOCKS_H

#include <stdint.h>

struct thread;

#define HELD_LOCKS_MAX 64u

struct held_lock {
  uint64_t object;
  uint8_t event; /* by which it was taken */
  uint8_t is_told;
  uint8_t is_released; /* outside of the record */
};

struct held_locks {
  uint32_t count; /* more than there is room for are not known */
  struct held_lock lock[HELD_LOCKS_MAX];
};

void held_locks_acquire(struct thread *thread, uint64_t object, uint8_t event);
void held_locks_release(struct thread *thread, uint64_t object);

/* From now on the thread is recorded. */
void held_locks_send(struct thread *thread);

#endif
