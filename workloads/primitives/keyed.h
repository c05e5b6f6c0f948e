// SPDX-License-Identifier: Apache-2.0
//
// Operations on a structure that finds elements by their keys. A read looks a key up and reads its
// payload; an update gives a key that is there a new payload; a change inserts a key, or removes it
// if it is there. Each key belongs to one thread, which alone changes it.
#ifndef KEYED_H
#define KEYED_H

#include "shadow.h"

// Of the structure: payload of a key (0: it is not there), and what a change does. What a removal
// has freed it says in `freed`; it is given back when the operation is durable.
struct freed {
  uint64_t node, payload;
};

static uint64_t find_payload(const struct set *set, struct worker *worker, uint64_t key);
static void insert_key(const struct set *set, struct worker *worker, uint64_t key,
                       uint64_t version);
static struct freed remove_key(const struct set *set, struct worker *worker, uint64_t key);

// Of the structure: keeps others from what is looked at until `unlock_keys`.
static void lock_keys(struct set *set, uint64_t first, uint64_t second, bool is_read);
static void unlock_keys(struct set *set, uint64_t first, uint64_t second);

static unsigned thread_of_key(const struct set *set, uint64_t key) {
  return (unsigned)(key / 3 % set->settings.threads);
}

static bool key_is_initial(const struct set *set, uint64_t key) {
  (void)set;
  return key % 3 != 2;
}

// The first of three keys of a thread's.
static uint64_t triple_of(const struct set *set, unsigned thread, uint64_t random) {
  uint64_t own = share(set->triples, set->settings.threads, thread);
  return 3 * (random % own * set->settings.threads + thread);
}

static uint64_t updated_key(const struct set *set, unsigned thread,
                            const struct operation *operation) {
  bool is_any = !operation->has_change; // then none is ever removed
  return triple_of(set, thread, operation->update) + (is_any ? operation->update >> 63 : 0);
}

static uint64_t changed_key(const struct set *set, unsigned thread,
                            const struct operation *operation) {
  return triple_of(set, thread, operation->change) + 1 + (operation->change >> 63);
}

static struct effects effects_of(const struct set *set, const struct shadow *shadow,
                                 unsigned thread, const struct operation *operation) {
  struct effects effects = {-1, -1, -1};
  if (operation->has_update)
    effects.updated = (int64_t)updated_key(set, thread, operation);
  if (operation->has_change) {
    int64_t key = (int64_t)changed_key(set, thread, operation);
    if (shadow->keys[key].is_present)
      effects.removed = key;
    else
      effects.inserted = key;
  }
  return effects;
}

static void read_key(struct set *set, struct worker *worker, const struct operation *operation) {
  uint64_t key = operation->update % set->keys;
  lock_keys(set, key, key, true);
  transaction_begin(&worker->transaction, LOG_NONE, operation->stamp);
  uint64_t payload = find_payload(set, worker, key);
  if (payload != 0)
    read_payload(set, worker, payload);
  unlock_keys(set, key, key);
}

static void perform(struct set *set, unsigned thread, const struct operation *operation) {
  struct worker *worker = &set->workers[thread];
  if (operation->is_read) {
    read_key(set, worker, operation);
    return;
  }
  uint64_t updated = updated_key(set, thread, operation);
  uint64_t changed = operation->has_change ? changed_key(set, thread, operation) : updated;
  if (!operation->has_update)
    updated = changed;
  struct freed freed = {0, 0};
  lock_keys(set, updated, changed, false);
  transaction_begin(&worker->transaction, operation->is_logged ? set->settings.log : LOG_NONE,
                    operation->stamp);
  if (operation->has_update)
    update_payload(set, worker, find_payload(set, worker, updated), updated, operation);
  if (operation->has_change && find_payload(set, worker, changed) != 0)
    freed = remove_key(set, worker, changed);
  else if (operation->has_change)
    insert_key(set, worker, changed, version_of(operation));
  transaction_end(&worker->transaction);
  unlock_keys(set, updated, changed);
  if (freed.node != 0) {
    give_unused(&worker->nodes, freed.node);
    give_unused(&worker->payloads, freed.payload);
  }
}

// Inserts the keys that are there at first, in an order that the seed decides.
static void fill(struct set *set, struct worker *worker) {
  uint64_t count = 0, *keys = set_allocate(set->keys, sizeof *keys);
  for (uint64_t key = 0; key < set->keys; key++)
    if (key_is_initial(set, key))
      keys[count++] = key;
  for (uint64_t i = count; i-- > 1;) {
    uint64_t other = scramble(set->settings.seed << 32 ^ i) % (i + 1), kept = keys[i];
    keys[i] = keys[other];
    keys[other] = kept;
  }
  for (uint64_t i = 0; i < count; i++) {
    transaction_begin(&worker->transaction, LOG_NONE, 0);
    insert_key(set, worker, keys[i], 0);
  }
  free(keys);
}

#if THREADS_MAX == 1
static void lock_keys(struct set *set, uint64_t first, uint64_t second, bool is_read) {
  (void)set, (void)first, (void)second, (void)is_read;
}
static void unlock_keys(struct set *set, uint64_t first, uint64_t second) {
  (void)set, (void)first, (void)second;
}
#endif

#endif
