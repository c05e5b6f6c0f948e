/* SPDX-License-Identifier: Apache-2.0 */
#include "wake_pairing.h"

#include "address_map.h"
#include "arena.h"
#include "platform.h"
#include "recording.h"

#include <string.h>

struct wake {
  uint64_t clock;
  uint32_t remaining; /* threads that it may still be paired with */
  uint32_t taken;     /* threads that it has been paired with */
};

/* All kinds of objects in one: memory that is reused for another kind begins anew with its
 * initialisation. */
struct object {
  uint32_t waiters;
  uint32_t initial_tokens;
  uint32_t participants;
  bool is_held;
  uint64_t arrivals;
  struct wake *wakes; /* oldest first, from wakes[first_wake] */
  uint32_t first_wake;
  uint32_t wake_count;
  uint32_t wake_capacity;
};

static struct {
  void *lock;
  struct arena arena;
  struct address_map objects;
} pairing;

void wake_pairing_init(void) { pairing.lock = platform_mutex_create(); }

void wake_pairing_exit(void) {
  arena_free(&pairing.arena);
  address_map_free(&pairing.objects);
  platform_mutex_destroy(pairing.lock);
}

static struct object *object_at(uint64_t address, bool *is_new) {
  struct object *object = address_map_find(&pairing.objects, address);
  *is_new = object == NULL;
  if (object == NULL) {
    object = arena_allocate(&pairing.arena, sizeof(*object));
    address_map_set(&pairing.objects, address, object);
  }
  return object;
}

static struct object *lock_object(uint64_t address) {
  bool is_new;
  platform_mutex_lock(pairing.lock);
  return object_at(address, &is_new);
}

static struct wake *wake_at(struct object *object, uint32_t at) {
  return &object->wakes[object->first_wake + at];
}

static void make_room(struct object *object) {
  if (object->first_wake + object->wake_count < object->wake_capacity)
    return;
  struct wake *wakes = object->wakes;
  if (object->first_wake <= object->wake_capacity / 2) {
    object->wake_capacity = object->wake_capacity == 0 ? 8 : object->wake_capacity * 2;
    object->wakes = arena_allocate(&pairing.arena, object->wake_capacity * sizeof(*wakes));
  }
  if (object->wake_count != 0)
    memmove(object->wakes, wakes + object->first_wake, object->wake_count * sizeof(*wakes));
  object->first_wake = 0;
}

static void add_wake(struct object *object, uint64_t clock, uint32_t remaining) {
  make_room(object);
  *wake_at(object, object->wake_count++) =
      (struct wake){.clock = clock, .remaining = remaining, .taken = 0};
}

static void remove_wake(struct object *object, uint32_t at) {
  object->wake_count--;
  if (at == 0)
    object->first_wake++;
  else
    memmove(wake_at(object, at), wake_at(object, at + 1),
            (object->wake_count - at) * sizeof(struct wake));
}

static void forget_wakes(struct object *object) { object->first_wake = object->wake_count = 0; }

void wake_pairing_after_fork(void) {
  pairing.lock = platform_mutex_create();
  for (uint32_t i = 0; i < pairing.objects.capacity; i++) {
    struct object *object = pairing.objects.entries[i].value;
    if (object == NULL)
      continue;
    object->initial_tokens +=
        object->wake_count; /* A semaphore's tokens are there from the start. */
    object->waiters = 0;
    forget_wakes(object);
  }
}

uint64_t wait_begins(uint64_t address) {
  struct object *object = lock_object(address);
  object->waiters++;
  uint64_t clock = clock_now();
  platform_mutex_unlock(pairing.lock);
  return clock;
}

uint64_t wait_ends(uint64_t address, uint64_t begun, bool is_woken) {
  struct object *object = lock_object(address);
  uint64_t clock = WAKE_UNKNOWN;
  for (uint32_t i = 0; is_woken && i < object->wake_count; i++) {
    struct wake *wake = wake_at(object, i);
    if (wake->clock <= begun)
      continue;
    clock = wake->clock;
    wake->taken++;
    if (wake->remaining != WAKE_ALL && --wake->remaining == 0)
      remove_wake(object, i);
    break;
  }
  if (--object->waiters == 0)
    forget_wakes(object); /* What is left woke nobody. */
  platform_mutex_unlock(pairing.lock);
  return clock;
}

uint64_t wake_happens(uint64_t address, uint32_t count) {
  struct object *object = lock_object(address);
  uint64_t clock = clock_advance();
  if (count != 0 && object->waiters > 0)
    add_wake(object, clock, count);
  platform_mutex_unlock(pairing.lock);
  return clock;
}

uint64_t signal_happens(uint64_t address) {
  struct object *object = lock_object(address);
  uint64_t clock = clock_advance();
  uint64_t promised = 0;
  for (uint32_t i = 0; i < object->wake_count; i++)
    promised += wake_at(object, i)->remaining;
  if (object->waiters > promised)
    add_wake(object, clock, 1);
  platform_mutex_unlock(pairing.lock);
  return clock;
}

void wake_counted(uint64_t address, uint64_t clock, uint32_t count) {
  struct object *object = lock_object(address);
  for (uint32_t i = 0; i < object->wake_count; i++) {
    struct wake *wake = wake_at(object, i);
    if (wake->clock != clock)
      continue;
    /* Some of those it woke may have returned before their waker did. */
    wake->remaining = count > wake->taken ? count - wake->taken : 0;
    if (wake->remaining == 0)
      remove_wake(object, i);
    break;
  }
  platform_mutex_unlock(pairing.lock);
}

void semaphore_initialised(uint64_t address, uint32_t value) {
  struct object *object = lock_object(address);
  object->initial_tokens = value;
  forget_wakes(object);
  platform_mutex_unlock(pairing.lock);
}

void semaphore_seen(uint64_t address, uint32_t value) {
  bool is_new;
  platform_mutex_lock(pairing.lock);
  struct object *object = object_at(address, &is_new);
  if (is_new)
    object->initial_tokens = value;
  platform_mutex_unlock(pairing.lock);
}

uint64_t semaphore_posts(uint64_t address, uint32_t value_before) {
  bool is_new;
  platform_mutex_lock(pairing.lock);
  struct object *object = object_at(address, &is_new);
  if (is_new)
    object->initial_tokens = value_before;
  uint64_t clock = clock_advance();
  add_wake(object, clock, 1);
  platform_mutex_unlock(pairing.lock);
  return clock;
}

uint64_t semaphore_takes(uint64_t address) {
  struct object *object = lock_object(address);
  uint64_t clock = WAKE_UNKNOWN;
  if (object->initial_tokens > 0) {
    object->initial_tokens--;
  } else if (object->wake_count > 0) {
    clock = wake_at(object, 0)->clock;
    remove_wake(object, 0);
  }
  platform_mutex_unlock(pairing.lock);
  return clock;
}

void barrier_initialised(uint64_t address, uint32_t participants) {
  struct object *object = lock_object(address);
  object->participants = participants;
  object->arrivals = 0;
  platform_mutex_unlock(pairing.lock);
}

void barrier_arrives(uint64_t address, uint32_t *participants, uint64_t *generation) {
  struct object *object = lock_object(address);
  *participants = object->participants;
  *generation = object->participants == 0 ? 0 : object->arrivals++ / object->participants;
  platform_mutex_unlock(pairing.lock);
}

bool barrier_has_opened(uint64_t address, uint64_t generation) {
  struct object *object = lock_object(address);
  bool has_opened = object->arrivals >= (generation + 1) * object->participants;
  platform_mutex_unlock(pairing.lock);
  return has_opened;
}

void spin_lock_taken(uint64_t address) {
  struct object *object = lock_object(address);
  object->is_held = true;
  platform_mutex_unlock(pairing.lock);
}

bool spin_lock_released(uint64_t address) {
  struct object *object = lock_object(address);
  bool is_held = object->is_held;
  object->is_held = false;
  platform_mutex_unlock(pairing.lock);
  return is_held;
}
