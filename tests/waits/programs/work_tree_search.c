// SPDX-License-Identifier: Apache-2.0
//
// A tree is searched under a lock while another thread changes it. Each step first looks into a log
// of the thread's own, the same words again, then reads a node that the step before has found.
#include <pthread.h>

#define OTHER change
#include "working.h"

enum { LEVELS = 8, NODES = 1 << LEVELS, SEARCHES = 20000, LOGGED = 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node {
  uint64_t key;
  uint64_t child[2]; // 0: none
} nodes[NODES];
static volatile uint64_t found;

static uint32_t scattered(uint32_t number) { return number * 2654435761u >> (32 - LEVELS); }

static struct {
  uint64_t entries;
  struct {
    uint64_t word, value;
  } entry[LOGGED];
} own_log;

static uint64_t load(const uint64_t *word) {
  for (uint64_t i = own_log.entries; i-- > 0;)
    if (own_log.entry[i].word == (uintptr_t)word)
      return own_log.entry[i].value;
  return *(const volatile uint64_t *)word;
}

static uint64_t search(uint64_t key) {
  uint64_t at = 1;
  for (;;) {
    uint64_t own = load(&nodes[at].key);
    uint64_t child = own == key ? 0 : load(&nodes[at].child[key > own]);
    if (child == 0)
      return at;
    at = child;
  }
}

// A heap's shape, in which node i has the keys of its left subtree below its own.
static void plant(uint32_t node, uint64_t low, uint64_t high) {
  nodes[node].key = (low + high) / 2;
  if (2 * node + 1 >= NODES)
    return;
  nodes[node].child[0] = 2 * node;
  nodes[node].child[1] = 2 * node + 1;
  plant(2 * node, low, nodes[node].key);
  plant(2 * node + 1, nodes[node].key, high);
}

static void change(void) {
  for (uint32_t i = 0; i < SEARCHES; i++) {
    pthread_mutex_lock(&lock);
    uint32_t parent = 1 + scattered(i) % (NODES / 2 - 1);
    uint64_t left = nodes[parent].child[0];
    nodes[parent].child[0] = left == 0 ? 2 * parent : 0;
    pthread_mutex_unlock(&lock);
  }
}

static uint64_t run(void) {
  pthread_mutex_lock(&lock);
  plant(1, 0, (uint64_t)NODES << 8);
  pthread_mutex_unlock(&lock);
  for (uint32_t i = 0; i < SEARCHES; i++) {
    pthread_mutex_lock(&lock);
    own_log.entries = 0;
    for (uint64_t entry = 0; entry < LOGGED; entry++) {
      uint64_t at = search((uint64_t)scattered(i + (uint32_t)entry / 2) << 8);
      own_log.entry[own_log.entries].word = (uintptr_t)&nodes[at].child[0];
      own_log.entry[own_log.entries++].value = nodes[at].child[0];
      found += at;
    }
    pthread_mutex_unlock(&lock);
  }
  return (uint64_t)SEARCHES * LOGGED * 10;
}
