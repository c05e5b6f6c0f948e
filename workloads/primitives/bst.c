// SPDX-License-Identifier: Apache-2.0
//
// Binary search tree that is not balanced; with -DPARALLEL one of 64 subtrees, each with a lock,
// for several threads.
//
// Without a log an insertion is one store of 8 bytes, the link to a node that is durable. So is the
// removal of a node with one child at most. A node with two takes over key and payload of its
// successor by one such store, and then the successor is unlinked by another: a power cut between
// the two leaves the successor twice, and recovery unlinks it. So each insertion and each removal
// is there as a whole or not at all, and the tree is always a search tree.
#ifdef PARALLEL
#define PROGRAM "bst_p"
#define THREADS_MAX 64
enum { SUBTREES_MIN = 2, SUBTREES_MAX = 16, SUBTREE_KEYS_MIN = 24 };
#else
#define PROGRAM "bst"
enum { SUBTREES_MIN = 1, SUBTREES_MAX = 1, SUBTREE_KEYS_MIN = 1 };
#endif

#include "keyed.h"

static const uint64_t magic = UINT64_C(0x312d545342504946); // "FIPBST-1"

struct root {
  alignas(LINE_BYTES) uint64_t link;
  uint64_t stamp; // in the same line
};
_Static_assert(sizeof(struct root) == LINE_BYTES, "a stamp lies in the line that it is about");

// Where a node hangs: the link to it, and the stamp of the line that has the link.
struct place {
  uint64_t *link, *stamp;
  uint64_t node; // 0: the key is not there
};

static uint64_t subtree_count(const struct set *set) {
  uint64_t count = set->keys / SUBTREE_KEYS_MIN;
  return count < SUBTREES_MIN ? SUBTREES_MIN : count > SUBTREES_MAX ? SUBTREES_MAX : count;
}

static uint64_t subtree_of(const struct set *set, uint64_t key) {
  return key * subtree_count(set) / set->keys;
}

#ifdef PARALLEL
static pthread_rwlock_t locks[SUBTREES_MAX];

// In ascending order, so that no two threads wait for each other.
static void lock_keys(struct set *set, uint64_t first, uint64_t second, bool is_read) {
  uint64_t low = subtree_of(set, first < second ? first : second);
  uint64_t high = subtree_of(set, first < second ? second : first);
  if (is_read) {
    pthread_rwlock_rdlock(&locks[low]);
    return;
  }
  pthread_rwlock_wrlock(&locks[low]);
  if (high != low)
    pthread_rwlock_wrlock(&locks[high]);
}

static void unlock_keys(struct set *set, uint64_t first, uint64_t second) {
  uint64_t one = subtree_of(set, first), other = subtree_of(set, second);
  pthread_rwlock_unlock(&locks[one]);
  if (other != one)
    pthread_rwlock_unlock(&locks[other]);
}

static void prepare_locks(void) {
  for (size_t i = 0; i < SUBTREES_MAX; i++)
    pthread_rwlock_init(&locks[i], NULL);
}
#else
static void prepare_locks(void) {}
#endif

static size_t structure_bytes(const struct set *set) {
  return subtree_count(set) * sizeof(struct root);
}

static uint64_t entry_of(const struct set *set, const struct worker *worker, uint64_t node) {
  return load(&worker->transaction, &set->nodes[node].entry);
}

static struct place find(const struct set *set, const struct worker *worker, uint64_t key) {
  struct root *root = (struct root *)set->structure + subtree_of(set, key);
  struct place place = {&root->link, &root->stamp, load(&worker->transaction, &root->link)};
  while (place.node != 0) {
    struct node *node = &set->nodes[place.node];
    uint64_t own = high_of(entry_of(set, worker, place.node));
    if (own == key)
      break;
    place.link = &node->children[key > own];
    place.stamp = &node->stamp;
    place.node = load(&worker->transaction, place.link);
  }
  return place;
}

static uint64_t find_payload(const struct set *set, struct worker *worker, uint64_t key) {
  uint64_t node = find(set, worker, key).node;
  return node == 0 ? 0 : low_of(entry_of(set, worker, node));
}

static void set_link(struct worker *worker, const struct place *place, uint64_t node) {
  store(&worker->transaction, place->link, node);
  store(&worker->transaction, place->stamp, worker->transaction.stamp);
}

static void insert_key(const struct set *set, struct worker *worker, uint64_t key,
                       uint64_t version) {
  struct place place = find(set, worker, key);
  uint64_t index = take_unused(&worker->nodes), payload = take_unused(&worker->payloads);
  set->nodes[index] = (struct node){.entry = pack(key, payload)};
  written(&worker->transaction, &set->nodes[index]);
  write_payload(set, worker, payload, key, version);
  ordered(&worker->transaction);
  set_link(worker, &place, index);
}

// Puts the successor's key and payload into a node with two children, and unlinks the successor.
static uint64_t take_over_successor(const struct set *set, struct worker *worker, uint64_t index) {
  struct node *node = &set->nodes[index];
  struct transaction *transaction = &worker->transaction;
  struct place place = {&node->children[1], &node->stamp, load(transaction, &node->children[1])};
  for (uint64_t left; (left = load(transaction, &set->nodes[place.node].children[0])) != 0;)
    place =
        (struct place){&set->nodes[place.node].children[0], &set->nodes[place.node].stamp, left};
  store(transaction, &node->entry, entry_of(set, worker, place.node));
  store(transaction, &node->stamp, transaction->stamp);
  ordered(transaction);
  set_link(worker, &place, load(transaction, &set->nodes[place.node].children[1]));
  return place.node;
}

static struct freed remove_key(const struct set *set, struct worker *worker, uint64_t key) {
  struct place place = find(set, worker, key);
  struct node *node = &set->nodes[place.node];
  struct freed freed = {place.node, low_of(entry_of(set, worker, place.node))};
  uint64_t left = load(&worker->transaction, &node->children[0]);
  uint64_t right = load(&worker->transaction, &node->children[1]);
  if (left != 0 && right != 0)
    freed.node = take_over_successor(set, worker, place.node);
  else
    set_link(worker, &place, left != 0 ? left : right);
  return freed;
}

static bool is_node(const struct set *set, uint64_t node) { return node <= set->keys; }

// Unlinks the successor of a node that has taken over its key and payload, and is cut short there.
static void repair(const struct set *set, uint64_t index, uint64_t depth) {
  struct node *node = &set->nodes[index];
  if (index == 0 || !is_node(set, index) || depth > set->keys)
    return;
  uint64_t *link = &node->children[1];
  while (is_node(set, *link) && *link != 0 && set->nodes[*link].children[0] != 0)
    link = &set->nodes[*link].children[0];
  if (is_node(set, *link) && *link != 0 && set->nodes[*link].entry == node->entry) {
    store_word(link, set->nodes[*link].children[1]);
    flush_bytes(link, sizeof *link);
    order();
  }
  repair(set, node->children[0], depth + 1);
  repair(set, node->children[1], depth + 1);
}

static void repair_structure(struct set *set) {
  for (size_t i = 0; i < subtree_count(set); i++)
    repair(set, ((struct root *)set->structure)[i].link, 0);
}

// The keys of a subtree lie from `low` to below `high`.
static void walk(const struct set *set, struct contents *contents, uint64_t index, uint64_t low,
                 uint64_t high) {
  if (index == 0 || !observe(set, contents, index))
    return;
  const struct node *node = &set->nodes[index];
  uint64_t key = high_of(node->entry);
  if (key < low || key >= high)
    set_fault(contents, "a key is on the wrong side of another");
  saw_stamp(set, contents, node->stamp);
  walk(set, contents, node->children[0], low, key);
  walk(set, contents, node->children[1], key + 1, high);
}

static void walk_structure(const struct set *set, struct contents *contents) {
  uint64_t count = subtree_count(set);
  for (uint64_t i = 0; i < count; i++) {
    const struct root *root = (const struct root *)set->structure + i;
    uint64_t low = (i * set->keys + count - 1) / count;
    uint64_t high = ((i + 1) * set->keys + count - 1) / count;
    saw_stamp(set, contents, root->stamp);
    walk(set, contents, root->link, low, high);
  }
}

#include "benchmark.h"
