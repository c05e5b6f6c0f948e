// SPDX-License-Identifier: Apache-2.0
//
// Cuckoo hash table: each key has two buckets of four slots, a line each. Where both are full,
// elements move to their other bucket until one has room (breadth first, so that few move).
//
// Without a log an insertion is one store of 8 bytes into a slot, and so is a removal. An element
// that moves is stored in its new slot, durably, before its old one is overwritten: a power cut may
// leave it in both, and recovery empties one. So each operation is there as a whole or not at all.
#define PROGRAM "cuckoo"

#include "keyed.h"

static const uint64_t magic = UINT64_C(0x312d4b4343504946); // "FIPCCK-1"

enum { SLOTS = 4, WAYS_MAX = 512 };

struct slot {
  uint64_t link; // key << 32 | node; 0: empty
  uint64_t stamp;
};

struct bucket {
  alignas(LINE_BYTES) struct slot slots[SLOTS];
};
_Static_assert(sizeof(struct bucket) == LINE_BYTES, "a stamp lies in the line that it is about");

// As many slots as there can be keys, two thirds of which are there on average.
static uint64_t bucket_count(const struct set *set) { return (set->keys + SLOTS - 1) / SLOTS + 1; }

static size_t structure_bytes(const struct set *set) {
  return bucket_count(set) * sizeof(struct bucket);
}

static void prepare_locks(void) {}

// A key's two buckets differ.
static uint64_t bucket_of(const struct set *set, uint64_t key, unsigned which) {
  uint64_t count = bucket_count(set), first = scramble(key) % count;
  uint64_t second = scramble(~key) % (count - 1);
  return which == 0 ? first : second + (second >= first);
}

static struct slot *slots_of(const struct set *set, uint64_t bucket) {
  return ((struct bucket *)set->structure)[bucket].slots;
}

static struct slot *find_in(const struct set *set, const struct worker *worker, uint64_t bucket,
                            uint64_t key, bool is_empty) {
  struct slot *slots = slots_of(set, bucket);
  for (unsigned i = 0; i < SLOTS; i++) {
    uint64_t link = load(&worker->transaction, &slots[i].link);
    if (is_empty ? link == 0 : link != 0 && high_of(link) == key)
      return &slots[i];
  }
  return NULL;
}

static struct slot *find(const struct set *set, const struct worker *worker, uint64_t key) {
  struct slot *slot = find_in(set, worker, bucket_of(set, key, 0), key, false);
  return slot != NULL ? slot : find_in(set, worker, bucket_of(set, key, 1), key, false);
}

static uint64_t payload_of(const struct set *set, const struct worker *worker,
                           const struct slot *slot) {
  uint64_t node = low_of(load(&worker->transaction, &slot->link));
  return low_of(load(&worker->transaction, &set->nodes[node].entry));
}

static uint64_t find_payload(const struct set *set, struct worker *worker, uint64_t key) {
  const struct slot *slot = find(set, worker, key);
  return slot == NULL ? 0 : payload_of(set, worker, slot);
}

// A bucket that an element may move to, out of a slot of another one.
struct way {
  uint64_t bucket;
  int from; // the way to the other one, -1: it is one of the new key's
  unsigned slot;
};

// Moves elements along a way that ends at an empty slot; gives the slot at its beginning.
static struct slot *make_room(const struct set *set, struct worker *worker, const struct way *ways,
                              int last, struct slot *empty) {
  for (int way = last; ways[way].from >= 0; way = ways[way].from) {
    struct slot *source = &slots_of(set, ways[ways[way].from].bucket)[ways[way].slot];
    store(&worker->transaction, &empty->link, load(&worker->transaction, &source->link));
    ordered(&worker->transaction);
    empty = source;
  }
  return empty;
}

static struct slot *find_room(const struct set *set, struct worker *worker, uint64_t key) {
  struct way ways[WAYS_MAX] = {{bucket_of(set, key, 0), -1, 0}, {bucket_of(set, key, 1), -1, 0}};
  int count = 2;
  for (int way = 0; way < count; way++) {
    uint64_t bucket = ways[way].bucket;
    struct slot *empty = find_in(set, worker, bucket, 0, true);
    if (empty != NULL)
      return make_room(set, worker, ways, way, empty);
    for (unsigned i = 0; i < SLOTS && count < WAYS_MAX; i++) {
      uint64_t other = high_of(load(&worker->transaction, &slots_of(set, bucket)[i].link));
      bool is_in_first = bucket_of(set, other, 0) == bucket;
      ways[count++] = (struct way){bucket_of(set, other, is_in_first), way, i};
    }
  }
  transaction_failure("the hash table has no room left: choose another --seed or --set-bytes");
}

static void set_slot(struct worker *worker, struct slot *slot, uint64_t link) {
  store(&worker->transaction, &slot->link, link);
  store(&worker->transaction, &slot->stamp, worker->transaction.stamp);
}

static void insert_key(const struct set *set, struct worker *worker, uint64_t key,
                       uint64_t version) {
  uint64_t index = take_unused(&worker->nodes), payload = take_unused(&worker->payloads);
  set->nodes[index] = (struct node){.entry = pack(key, payload)};
  written(&worker->transaction, &set->nodes[index]);
  write_payload(set, worker, payload, key, version);
  ordered(&worker->transaction);
  set_slot(worker, find_room(set, worker, key), pack(key, index));
}

static struct freed remove_key(const struct set *set, struct worker *worker, uint64_t key) {
  struct slot *slot = find(set, worker, key);
  struct freed freed = {low_of(load(&worker->transaction, &slot->link)),
                        payload_of(set, worker, slot)};
  set_slot(worker, slot, 0);
  return freed;
}

// Empties the second of two slots that hold one element.
static void repair_structure(struct set *set) {
  bool *is_seen = set_allocate(set->keys + 1, sizeof *is_seen);
  for (uint64_t bucket = 0; bucket < bucket_count(set); bucket++)
    for (unsigned i = 0; i < SLOTS; i++) {
      struct slot *slot = &slots_of(set, bucket)[i];
      uint64_t node = low_of(slot->link);
      if (node == 0 || node > set->keys)
        continue;
      if (is_seen[node]) {
        store_word(&slot->link, 0);
        flush_bytes(slot, sizeof *slot);
        order();
      }
      is_seen[node] = true;
    }
  free(is_seen);
}

static void walk_structure(const struct set *set, struct contents *contents) {
  for (uint64_t bucket = 0; bucket < bucket_count(set); bucket++)
    for (unsigned i = 0; i < SLOTS; i++) {
      const struct slot *slot = &slots_of(set, bucket)[i];
      uint64_t key = high_of(slot->link), node = low_of(slot->link);
      saw_stamp(set, contents, slot->stamp);
      if (slot->link == 0 || !observe(set, contents, node))
        continue;
      if (high_of(set->nodes[node].entry) != key)
        set_fault(contents, "a slot leads to the node of another key");
      if (bucket_of(set, key, 0) != bucket && bucket_of(set, key, 1) != bucket)
        set_fault(contents, "a key is in the wrong bucket");
    }
}

#include "benchmark.h"
