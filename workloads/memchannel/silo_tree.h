// SPDX-License-Identifier: Apache-2.0
//
// The ordered index of the transactional store: a B+-tree whose readers take no locks but check
// versions of nodes, and whose writers lock only the nodes that they change (optimistic lock
// coupling: Leis et al., DaMoN 2016). Full nodes are split on the way down, so that a split never
// goes up further than to a parent that has room.
#ifndef SILO_TREE_H
#define SILO_TREE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "arena.h"
#include "broken.h"

enum { SILO_KEYS = 14 }; // a node takes four lines

struct silo_node {
  _Atomic uint64_t version; // odd while it is locked
  uint32_t count;           // of keys
  uint32_t is_leaf;
  uint64_t keys[SILO_KEYS];
  // Of a leaf the record of each key; of others the child before each key, and the last one.
  void *below[SILO_KEYS + 1];
};

struct silo_tree {
  _Atomic(struct silo_node *) root;
};

static inline uint64_t silo_node_read(const struct silo_node *node) {
  for (;;) {
    uint64_t version = atomic_load_explicit(&node->version, memory_order_acquire);
    if (version % 2 == 0)
      return version;
  }
}

static inline bool silo_node_is_still(const struct silo_node *node, uint64_t version) {
  atomic_thread_fence(memory_order_acquire);
  return atomic_load_explicit(&node->version, memory_order_relaxed) == version;
}

static inline bool silo_node_lock(struct silo_node *node, uint64_t version) {
  return atomic_compare_exchange_strong_explicit(&node->version, &version, version + 1,
                                                 memory_order_acquire, memory_order_relaxed);
}

static inline void silo_node_unlock(struct silo_node *node) {
  atomic_fetch_add_explicit(&node->version, 1, memory_order_release);
}

// All lines of a node at once, as Masstree does (Mao et al., EuroSys 2012), which is Silo's index.
static inline void silo_node_prefetch(const struct silo_node *node) {
  for (unsigned at = 0; at < sizeof *node; at += ARENA_LINE_BYTES)
    __builtin_prefetch((const char *)node + at);
}

// How many keys of a node are less than `key`; at most as many as a node can have, whatever a
// writer does meanwhile.
static inline unsigned silo_position(const struct silo_node *node, uint64_t key) {
  unsigned low = 0, high = node->count <= SILO_KEYS ? node->count : SILO_KEYS;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (node->keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// What a look-up saw: the record, or none, and the leaf that says so.
struct silo_found {
  void *record;
  struct silo_node *leaf;
  uint64_t version;
};

static inline struct silo_found silo_tree_find(const struct silo_tree *tree, uint64_t key) {
restart:;
  struct silo_node *node = atomic_load_explicit(&tree->root, memory_order_acquire);
  uint64_t version = silo_node_read(node);
  if (node != atomic_load_explicit(&tree->root, memory_order_relaxed))
    goto restart;
  while (!node->is_leaf) {
    struct silo_node *child = node->below[silo_position(node, key)];
    if (!silo_node_is_still(node, version))
      goto restart;
    silo_node_prefetch(child);
    uint64_t below = silo_node_read(child);
    if (!silo_node_is_still(node, version))
      goto restart;
    node = child;
    version = below;
  }
  unsigned at = silo_position(node, key);
  void *record = at < node->count && node->keys[at] == key ? node->below[at] : NULL;
  if (!silo_node_is_still(node, version))
    goto restart;
  return (struct silo_found){.record = record, .leaf = node, .version = version};
}

static inline struct silo_node *silo_node_new(struct arena *arena, bool is_leaf) {
  struct silo_node *node = arena_take(arena, sizeof *node);
  node->is_leaf = is_leaf;
  return node;
}

// Puts a key and what is below it at a place; of an inner node, what lies behind the key.
static inline void silo_node_put(struct silo_node *node, unsigned at, uint64_t key, void *below) {
  unsigned behind = node->is_leaf ? at : at + 1;
  unsigned last = node->is_leaf ? node->count : node->count + 1;
  memmove(&node->keys[at + 1], &node->keys[at], (node->count - at) * sizeof *node->keys);
  memmove(&node->below[behind + 1], &node->below[behind], (last - behind) * sizeof *node->below);
  node->keys[at] = key;
  node->below[behind] = below;
  node->count++;
}

// Moves the upper half of a locked node to a new one; `divider` is the last key that stays below.
static inline struct silo_node *silo_node_split(struct arena *arena, struct silo_node *node,
                                                uint64_t *divider) {
  struct silo_node *upper = silo_node_new(arena, node->is_leaf);
  unsigned kept = node->count / 2;
  *divider = node->keys[kept - 1];
  upper->count = node->count - kept;
  memcpy(upper->keys, &node->keys[kept], upper->count * sizeof *upper->keys);
  memcpy(upper->below, &node->below[kept], (upper->count + !node->is_leaf) * sizeof *upper->below);
  // An inner node's divider goes up; a leaf keeps its own.
  node->count = node->is_leaf && BROKEN != KEY_LEFT_OUT ? kept : kept - 1;
  return upper;
}

// Splits a full node, whose parent has room (none: it is the root); whether nobody was faster.
static inline bool silo_tree_split(struct silo_tree *tree, struct arena *arena,
                                   struct silo_node *parent, uint64_t parent_version,
                                   struct silo_node *node, uint64_t version) {
  if (parent != NULL && !silo_node_lock(parent, parent_version))
    return false;
  bool is_mine = silo_node_lock(node, version);
  // A root that was split meanwhile is none any more.
  if (is_mine && parent == NULL && atomic_load(&tree->root) != node) {
    silo_node_unlock(node);
    is_mine = false;
  }
  if (is_mine) {
    uint64_t divider;
    struct silo_node *upper = silo_node_split(arena, node, &divider);
    if (parent != NULL) {
      silo_node_put(parent, silo_position(parent, divider), divider, upper);
    } else {
      struct silo_node *root = silo_node_new(arena, false);
      root->count = 1;
      root->keys[0] = divider;
      root->below[0] = node;
      root->below[1] = upper;
      atomic_store_explicit(&tree->root, root, memory_order_release);
    }
    silo_node_unlock(node);
  }
  if (parent != NULL)
    silo_node_unlock(parent);
  return is_mine;
}

// Inserts `record`; where the key is there already, returns its record instead.
static inline void *silo_tree_insert(struct silo_tree *tree, struct arena *arena, uint64_t key,
                                     void *record) {
restart:;
  struct silo_node *parent = NULL;
  uint64_t parent_version = 0;
  struct silo_node *node = atomic_load_explicit(&tree->root, memory_order_acquire);
  uint64_t version = silo_node_read(node);
  if (node != atomic_load_explicit(&tree->root, memory_order_relaxed))
    goto restart;
  for (;;) {
    if (node->count == SILO_KEYS) {
      silo_tree_split(tree, arena, parent, parent_version, node, version);
      goto restart;
    }
    if (node->is_leaf)
      break;
    struct silo_node *child = node->below[silo_position(node, key)];
    if (!silo_node_is_still(node, version))
      goto restart;
    parent = node;
    parent_version = version;
    node = child;
    version = silo_node_read(child);
    if (!silo_node_is_still(parent, parent_version))
      goto restart;
  }
  if (!silo_node_lock(node, version))
    goto restart;
  unsigned at = silo_position(node, key);
  void *present = at < node->count && node->keys[at] == key ? node->below[at] : NULL;
  if (present == NULL)
    silo_node_put(node, at, key, record);
  silo_node_unlock(node);
  return present;
}

#endif
