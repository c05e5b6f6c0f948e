// SPDX-License-Identifier: Apache-2.0
//
// What a run must have left: a shadow in volatile memory, on which all operations are performed
// again from the first, as plain changes of an array. A pool is right if it equals the shadow at a
// position, for each thread's keys, and that position is not before what the pool has a trace of.
//
// A logged operation is there as a whole or not at all. One without a log has two steps, the update
// of a payload and the insertion or removal, each durable before the next: a power cut may fall
// between them, and within the update, which leaves the first words of the payload new and the
// others old (on AArch64, which orders stores to one line only where it is told to, words of both).
#ifndef SHADOW_H
#define SHADOW_H

#include "set.h"

// What the pool holds of a key.
struct observation {
  bool is_present, is_torn;
  uint64_t version, old_version; // the latter of a payload of two versions
};

struct shadow_key {
  bool is_present;
  uint64_t version;
};

// What a structure reports while it is walked.
struct contents {
  const char *fault; // NULL: none
  uint64_t elements;
  bool *is_node_used, *is_payload_used;
  struct observation *keys;
  uint64_t front, rear; // of the queue
  // By thread, in steps of two for each operation: what the pool has traces of.
  uint64_t steps_seen[TEAM_THREADS_MAX];
};

struct shadow {
  struct shadow_key *keys;
  uint64_t front, rear;
};

// What an operation changes; -1 for nothing.
struct effects {
  int64_t updated, inserted, removed; // keys
};

// The structure says which keys an operation means, and whose they are.
static struct effects effects_of(const struct set *set, const struct shadow *shadow,
                                 unsigned thread, const struct operation *operation);
static unsigned thread_of_key(const struct set *set, uint64_t key);
static bool key_is_initial(const struct set *set, uint64_t key);

static inline void set_fault(struct contents *contents, const char *what) {
  if (contents->fault == NULL)
    contents->fault = what;
}

static inline void saw_steps(struct contents *contents, unsigned thread, uint64_t steps) {
  if (steps > contents->steps_seen[thread])
    contents->steps_seen[thread] = steps;
}

static inline void saw_stamp(const struct set *set, struct contents *contents, uint64_t stamp) {
  uint64_t thread = stamp >> STAMP_THREAD_BIT;
  uint64_t version = stamp & ((UINT64_C(1) << STAMP_THREAD_BIT) - 1);
  if (thread >= set->settings.threads || version > set->settings.operations)
    set_fault(contents, "a line was changed by an operation that there is not");
  else
    saw_steps(contents, (unsigned)thread, 2 * version);
}

// Whether the words of two versions lie as stores in their order leave them.
static inline bool is_prefix(const uint64_t versions[PAYLOAD_WORDS]) {
#if defined(__x86_64__)
  for (size_t i = 1; i < PAYLOAD_WORDS; i++)
    if (versions[i] > versions[i - 1])
      return false;
#else
  (void)versions;
#endif
  return true;
}

static inline void observe_payload(const struct set *set, struct contents *contents, uint64_t key,
                                   uint64_t payload) {
  uint64_t versions[PAYLOAD_WORDS], low = UINT64_MAX, high = 0;
  for (size_t i = 0; i < PAYLOAD_WORDS; i++) {
    uint64_t word = set->payloads[payload].words[i] ^ scramble(key);
    versions[i] = word >> 3;
    if ((word & 7) != i || versions[i] > set->settings.operations) {
      set_fault(contents, "a payload holds what was never written to it");
      return;
    }
    low = versions[i] < low ? versions[i] : low;
    high = versions[i] > high ? versions[i] : high;
  }
  for (size_t i = 0; i < PAYLOAD_WORDS; i++)
    if ((versions[i] != low && versions[i] != high) || !is_prefix(versions))
      set_fault(contents, "a payload is a mixture of versions");
  contents->keys[key].version = high;
  contents->keys[key].old_version = low;
  contents->keys[key].is_torn = low != high;
  if (high != 0)
    saw_steps(contents, thread_of_key(set, key), 2 * high - 1 - (low != high));
}

// An element was found. False if the walk cannot go on from here.
static inline bool observe(const struct set *set, struct contents *contents, uint64_t node) {
  if (node == 0 || node > set->keys) {
    set_fault(contents, "a reference leads out of the pool");
    return false;
  }
  uint64_t key = high_of(set->nodes[node].entry), payload = low_of(set->nodes[node].entry);
  if (contents->is_node_used[node]) {
    set_fault(contents, "a node is referred to twice");
    return false;
  }
  contents->is_node_used[node] = true;
  if (key >= set->keys || payload == 0 || payload > set->keys) {
    set_fault(contents, "a node is incomplete");
    return false;
  }
  if (contents->is_payload_used[payload] || contents->keys[key].is_present)
    set_fault(contents, "a key is there twice");
  contents->is_payload_used[payload] = true;
  contents->keys[key].is_present = true;
  contents->elements++;
  observe_payload(set, contents, key, payload);
  return true;
}

static inline struct contents contents_new(const struct set *set) {
  return (struct contents){.is_node_used = set_allocate(set->keys + 1, sizeof(bool)),
                           .is_payload_used = set_allocate(set->keys + 1, sizeof(bool)),
                           .keys = set_allocate(set->keys, sizeof(struct observation))};
}

static inline void contents_free(struct contents *contents) {
  free(contents->is_node_used);
  free(contents->is_payload_used);
  free(contents->keys);
}

static inline struct shadow shadow_new(const struct set *set) {
  struct shadow shadow = {.keys = set_allocate(set->keys, sizeof(struct shadow_key))};
  for (uint64_t key = 0; key < set->keys; key++) {
    shadow.keys[key].is_present = key_is_initial(set, key);
    shadow.rear += shadow.keys[key].is_present;
  }
  return shadow;
}

// A comparison in progress.
struct comparison {
  const struct set *set;
  const struct contents *contents;
  struct shadow *shadow;
  unsigned thread;
  uint64_t differences; // keys of the thread that differ, but for the torn one
  int64_t torn;         // key, -1 if there is none
};

static inline bool differs(const struct comparison *comparison, uint64_t key) {
  const struct observation *seen = &comparison->contents->keys[key];
  const struct shadow_key *expected = &comparison->shadow->keys[key];
  if ((int64_t)key == comparison->torn)
    return false;
  return seen->is_present != expected->is_present ||
         (seen->is_present && seen->version != expected->version);
}

static inline void change_shadow(struct comparison *comparison, int64_t key,
                                 struct shadow_key value) {
  if (key < 0)
    return;
  comparison->differences -= differs(comparison, (uint64_t)key);
  comparison->shadow->keys[key] = value;
  comparison->differences += differs(comparison, (uint64_t)key);
}

// Whether the torn payload is what an interrupted update of this operation leaves; without a torn
// one there is nothing to explain.
static inline bool explains_torn(const struct comparison *comparison,
                                 const struct operation *operation, const struct effects *effects) {
  if (comparison->torn < 0)
    return true;
  const struct observation *seen = &comparison->contents->keys[comparison->torn];
  const struct shadow_key *expected = &comparison->shadow->keys[comparison->torn];
  return operation != NULL && !operation->is_logged && effects->updated == comparison->torn &&
         seen->version == version_of(operation) && expected->is_present &&
         seen->old_version == expected->version;
}

static inline bool is_at(const struct comparison *comparison, uint64_t steps) {
  return steps >= comparison->contents->steps_seen[comparison->thread] &&
         comparison->differences == 0;
}

static inline void apply_change(struct comparison *comparison, const struct operation *operation,
                                const struct effects *effects) {
  struct shadow_key inserted = {.is_present = true, .version = version_of(operation)};
  change_shadow(comparison, effects->inserted, inserted);
  change_shadow(comparison, effects->removed, (struct shadow_key){0});
  comparison->shadow->rear += effects->inserted >= 0;
  comparison->shadow->front += effects->removed >= 0;
}

static inline void begin_comparison(struct comparison *comparison, struct contents *contents) {
  comparison->torn = -1;
  for (uint64_t key = 0; key < comparison->set->keys; key++) {
    if (thread_of_key(comparison->set, key) != comparison->thread)
      continue;
    if (contents->keys[key].is_torn && comparison->torn >= 0)
      set_fault(contents, "more than one payload was being written");
    if (contents->keys[key].is_torn)
      comparison->torn = (int64_t)key;
  }
  for (uint64_t key = 0; key < comparison->set->keys; key++)
    if (thread_of_key(comparison->set, key) == comparison->thread)
      comparison->differences += differs(comparison, key);
}

// How many operations of a thread the pool holds, up to the last one that left a trace. Sets a
// fault if it is no position of the run's.
static inline uint64_t operations_held(const struct set *set, struct contents *contents,
                                       struct shadow *shadow, unsigned thread) {
  struct comparison comparison = {
      .set = set, .contents = contents, .shadow = shadow, .thread = thread};
  begin_comparison(&comparison, contents);
  uint64_t count = share(set->settings.operations, set->settings.threads, thread);
  uint64_t held = 0;
  for (uint64_t n = 0; n < count; n++) {
    struct operation operation = operation_of(&set->settings, thread, n);
    if (operation.is_read)
      continue;
    struct effects effects = effects_of(set, shadow, thread, &operation);
    if (is_at(&comparison, 2 * n) && explains_torn(&comparison, &operation, &effects))
      return held;
    if (effects.updated >= 0)
      change_shadow(&comparison, effects.updated,
                    (struct shadow_key){.is_present = true, .version = version_of(&operation)});
    bool is_between = operation.has_update && operation.has_change && !operation.is_logged;
    if (is_between && is_at(&comparison, 2 * n + 1) && comparison.torn < 0)
      return held;
    apply_change(&comparison, &operation, &effects);
    held = n + 1;
  }
  if (!is_at(&comparison, 2 * count) || !explains_torn(&comparison, NULL, NULL))
    set_fault(contents, "no sequence of whole operations leads to what the pool holds");
  return count;
}

#endif
