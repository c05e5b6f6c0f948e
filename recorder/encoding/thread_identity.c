/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_identity.h"

#include "address_map.h"
#include "platform.h"
#include "record_format.h"
#include "recording.h"

#include <string.h>

/* What is stored in the maps: an id, never NULL. */
#define FROM_ID(id) ((void *)((uintptr_t)(id) + 1))
#define TO_ID(value) ((uint32_t)((uintptr_t)(value) - 1))

#define STARTS_AWAITED_MS_MAX 1000u

static struct {
  void *lock;
  struct address_map started; /* by kernel tid: started, its creator not yet back */
  struct address_map created; /* by kernel tid: created, not yet started */
  struct address_map handles;
} identities;

void thread_identities_init(void) { identities.lock = platform_mutex_create(); }

static void forget(struct address_map *map) {
  address_map_free(map);
  memset(map, 0, sizeof(*map));
}

void thread_identities_after_fork(void) {
  identities.lock = platform_mutex_create();
  forget(&identities.started);
  forget(&identities.created);
  forget(&identities.handles);
}

void thread_identities_exit(void) {
  address_map_free(&identities.started);
  address_map_free(&identities.created);
  address_map_free(&identities.handles);
  platform_mutex_destroy(identities.lock);
}

static uint32_t new_id(void) {
  uint32_t id = __atomic_fetch_add(&recording.control->next_thread, 1, __ATOMIC_SEQ_CST);
  if (id >= RECORD_THREADS_MAX)
    recording_stop(STOP_TOO_MANY_THREADS);
  return id;
}

/* The id of a kernel thread that one side (its creator or itself) announces, as the other side has
 * announced it, or a new one. Kernel ids are used again, so an announcement serves once. */
static uint32_t announce(struct address_map *mine, struct address_map *theirs, uint64_t tid) {
  platform_mutex_lock(identities.lock);
  void *known = address_map_find(theirs, tid);
  uint32_t id;
  if (known != NULL) {
    id = TO_ID(known);
    address_map_set(theirs, tid, NULL);
  } else {
    id = new_id();
    address_map_set(mine, tid, FROM_ID(id));
  }
  platform_mutex_unlock(identities.lock);
  return id;
}

uint32_t thread_identity_starts(uint64_t kernel_tid) {
  return announce(&identities.started, &identities.created, kernel_tid);
}

uint32_t thread_identity_created(uint64_t kernel_tid) {
  return announce(&identities.created, &identities.started, kernel_tid);
}

static bool has_unstarted(void) {
  bool is_found = false;
  platform_mutex_lock(identities.lock);
  for (uint32_t i = 0; i < identities.created.capacity && !is_found; i++)
    is_found = identities.created.entries[i].value != NULL;
  platform_mutex_unlock(identities.lock);
  return is_found;
}

void thread_identities_await_starts(void) {
  /* One that is killed before it starts never will: not for ever. */
  for (uint32_t waited_ms = 0; waited_ms < STARTS_AWAITED_MS_MAX && has_unstarted(); waited_ms++)
    platform_sleep_ms(1);
}

void thread_handle_set(uint64_t handle, uint32_t thread) {
  platform_mutex_lock(identities.lock);
  address_map_set(&identities.handles, handle, FROM_ID(thread));
  platform_mutex_unlock(identities.lock);
}

uint32_t thread_handle_find(uint64_t handle) {
  platform_mutex_lock(identities.lock);
  void *known = address_map_find(&identities.handles, handle);
  platform_mutex_unlock(identities.lock);
  return known == NULL ? NO_THREAD : TO_ID(known);
}
