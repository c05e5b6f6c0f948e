/* SPDX-License-Identifier: Apache-2.0 */
#include "held_locks.h"

#include "fields.h"
#include "record_format.h"
#include "recording.h"
#include "thread.h"

void held_locks_acquire(struct thread *thread, uint64_t object, uint8_t event) {
  struct held_locks *held = &thread->held;
  if (held->count < HELD_LOCKS_MAX)
    held->lock[held->count++] = (struct held_lock){object, event, .is_told = thread->is_recorded};
}

static void forget(struct held_locks *held, struct held_lock *lock) {
  *lock = held->lock[--held->count];
}

void held_locks_release(struct thread *thread, uint64_t object) {
  struct held_locks *held = &thread->held;
  for (uint32_t i = held->count; i-- > 0;) {
    struct held_lock *lock = &held->lock[i];
    if (lock->object != object || lock->is_released)
      continue;
    if (lock->is_told && !thread->is_recorded)
      lock->is_released = true;
    else
      forget(held, lock);
    return;
  }
}

static uint8_t release_of(uint8_t event) {
  switch (event) {
  case EVENT_MUTEX_LOCK:
    return EVENT_MUTEX_UNLOCK;
  case EVENT_SPIN_LOCK:
    return EVENT_SPIN_UNLOCK;
  default:
    return EVENT_RW_UNLOCK;
  }
}

static void send(struct thread *thread, const struct held_lock *lock, uint8_t event) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, lock->object);
  fields_send_clocked(&fields, thread, event, clock_advance());
}

void held_locks_send(struct thread *thread) {
  struct held_locks *held = &thread->held;
  for (uint32_t i = held->count; i-- > 0;) {
    if (!held->lock[i].is_released)
      continue;
    send(thread, &held->lock[i], release_of(held->lock[i].event));
    forget(held, &held->lock[i]);
  }
  for (uint32_t i = 0; i < held->count; i++) {
    if (!held->lock[i].is_told)
      send(thread, &held->lock[i], held->lock[i].event);
    held->lock[i].is_told = true;
  }
}
