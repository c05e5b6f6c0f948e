// SPDX-License-Identifier: Apache-2.0
//
// A tree of two levels whose nodes have versions (optimistic lock coupling: Leis et al., DaMoN
// 2016). All threads look keys up without taking a lock, and lock a leaf to change it. Each works
// for itself, and a lock is had for little, so the critical path is one thread's work.
#include "rounds.h"
#include "version_lock.h"

enum { LEAVES = 8, KEYS = 4, CHANGING = 10 };

struct leaf {
  _Alignas(LINE_BYTES) version_lock version;
  _Atomic uint64_t value[KEYS];
};

static struct {
  _Alignas(LINE_BYTES) version_lock version;
  _Alignas(LINE_BYTES) struct leaf *_Atomic child[LEAVES];
} root;

static struct leaf leaves[LEAVES];

__attribute__((constructor)) static void plant(void) {
  for (unsigned i = 0; i < LEAVES; i++)
    root.child[i] = &leaves[i];
}

// The leaf of a key, and its version then.
static struct leaf *find(uint64_t key, uint64_t *version) {
  for (;;) {
    uint64_t above = version_read(&root.version);
    struct leaf *leaf = atomic_load_explicit(&root.child[key / KEYS], memory_order_relaxed);
    if (!version_is_still(&root.version, above))
      continue;
    *version = version_read(&leaf->version);
    if (version_is_still(&root.version, above))
      return leaf;
  }
}

static uint64_t look_up(uint64_t key) {
  for (;;) {
    uint64_t version;
    struct leaf *leaf = find(key, &version);
    uint64_t value = atomic_load_explicit(&leaf->value[key % KEYS], memory_order_relaxed);
    if (version_is_still(&leaf->version, version))
      return value;
  }
}

static void change(unsigned thread, uint64_t key) {
  uint64_t version;
  struct leaf *leaf;
  do
    leaf = find(key, &version);
  while (!version_try_lock(&leaf->version, version));
  atomic_fetch_add_explicit(&leaf->value[key % KEYS], 1, memory_order_relaxed);
  work(thread, CHANGING);
  atomic_fetch_add_explicit(&leaf->version, 1, memory_order_release);
}

// Puts another leaf in the place of one.
static void replace(uint64_t key, unsigned round) {
  version_lock_any(&root.version);
  struct leaf *other = &leaves[(key / KEYS + round) % LEAVES];
  atomic_store_explicit(&root.child[key / KEYS], other, memory_order_relaxed);
  version_unlock(&root.version);
}

static void run(unsigned thread) {
  uint64_t key = thread * 7;
  volatile uint64_t seen = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    work(thread, LONG_WORK);
    key = (key * 5 + 3 + thread) % (LEAVES * KEYS);
    seen = look_up(key);
    change(thread, (key * 3 + round) % (LEAVES * KEYS));
    if (thread == 0)
      replace(key, round);
  }
  (void)seen;
}

static struct path critical_path(void) { return path_apart(ROUNDS * (LONG_WORK + CHANGING)); }
