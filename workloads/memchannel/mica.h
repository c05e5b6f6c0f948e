// SPDX-License-Identifier: Apache-2.0
//
// A hash-table store after MICA (Lim et al., NSDI 2014): a lossy index of buckets of one line and a
// circular log for each thread, over one table that all threads read and write. Requests come in
// batches whose buckets and items are prefetched. Keys have 16 B and values 64 B, MICA's small
// items.
#ifndef MICA_H
#define MICA_H

#include <stdatomic.h>
#include <string.h>

#include "broken.h"
#include "scramble.h"
#include "tenant.h"
#include "ycsb.h"

enum { MICA_SLOTS = 7, MICA_VALUE_WORDS = 8, MICA_BATCH = 8 };

// A slot is 0, or a tag of 16 bits, a thread of 8 and a position in its log of 40, plus 1.
struct mica_bucket {
  _Atomic uint64_t version; // odd while it is written
  _Atomic uint64_t slots[MICA_SLOTS];
};

struct mica_item {
  uint64_t header[2]; // sizes and expiry, which nothing here needs
  uint64_t key[2];
  uint64_t value[MICA_VALUE_WORDS]; // how often it was updated, and words that follow from that
};

// Of a thread; nobody else writes it.
struct mica_thread {
  struct mica_item *log;
  uint64_t log_items;
  uint64_t tail; // items ever appended
  const struct ycsb_request *requests;
  uint64_t updates, found, missed, torn, evicted, evicted_updates;
  uint64_t reply[MICA_VALUE_WORDS];
} __attribute__((aligned(64)));

struct mica {
  struct mica_bucket *buckets;
  uint64_t bucket_mask;
  struct mica_thread threads[];
};

static inline uint64_t mica_hash(uint64_t key) { return scramble(key ^ UINT64_C(0x6d696361)); }

static inline struct mica_bucket *mica_bucket_of(struct mica *mica, uint64_t hash) {
  return &mica->buckets[hash & mica->bucket_mask];
}

static inline struct mica_item *mica_item_at(struct mica *mica, uint64_t slot) {
  struct mica_thread *of = &mica->threads[slot >> 40 & 0xff];
  uint64_t position = (slot & UINT64_C(0xffffffffff)) - 1;
  // What the log has overwritten since is gone.
  return of->tail - position > of->log_items ? NULL : &of->log[position % of->log_items];
}

// The slot of a key, or -1. What it points at has to be looked at: a tag is no key.
static inline int mica_find(struct mica *mica, struct mica_bucket *bucket, uint64_t hash,
                            uint64_t key) {
  for (int at = 0; at < MICA_SLOTS; at++) {
    uint64_t slot = atomic_load_explicit(&bucket->slots[at], memory_order_relaxed);
    if (slot == 0 || slot >> 48 != hash >> 48)
      continue;
    const struct mica_item *item = mica_item_at(mica, slot);
    if (item != NULL && item->key[0] == key && item->key[1] == ~key)
      return at;
  }
  return -1;
}

static inline void mica_lock(struct mica_bucket *bucket) {
  for (;;) {
    uint64_t version = atomic_load_explicit(&bucket->version, memory_order_relaxed);
    if (version % 2 == 0 &&
        atomic_compare_exchange_weak_explicit(&bucket->version, &version, version + 1,
                                              memory_order_acquire, memory_order_relaxed))
      return;
  }
}

static inline void mica_unlock(struct mica_bucket *bucket) {
  atomic_fetch_add_explicit(&bucket->version, 1, memory_order_release);
}

static inline void mica_value(uint64_t *value, uint64_t key, uint64_t updates) {
  value[0] = updates;
  for (unsigned word = 1; word < MICA_VALUE_WORDS; word++)
    value[word] = key * 31 + updates + word;
}

static inline bool mica_value_is_whole(const uint64_t *value, uint64_t key) {
  return value[MICA_VALUE_WORDS - 1] == key * 31 + value[0] + MICA_VALUE_WORDS - 1;
}

static inline void mica_get(struct mica *mica, struct mica_thread *own, uint64_t hash,
                            uint64_t key) {
  struct mica_bucket *bucket = mica_bucket_of(mica, hash);
  for (;;) {
    uint64_t before = atomic_load_explicit(&bucket->version, memory_order_acquire);
    if (before % 2 != 0)
      continue;
    int at = mica_find(mica, bucket, hash, key);
    if (at >= 0)
      memcpy(own->reply, mica_item_at(mica, bucket->slots[at])->value, sizeof own->reply);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&bucket->version, memory_order_relaxed) != before)
      continue;
    own->found += at >= 0;
    own->missed += at < 0;
    own->torn += at >= 0 && !mica_value_is_whole(own->reply, key);
    return;
  }
}

// Into the own log, and into the key's bucket; a full bucket loses one of its items.
static inline void mica_insert(struct mica *mica, struct mica_thread *own, unsigned thread,
                               uint64_t hash, uint64_t key) {
  struct mica_bucket *bucket = mica_bucket_of(mica, hash);
  struct mica_item *item = &own->log[own->tail % own->log_items];
  item->header[0] = sizeof item->key << 32 | sizeof item->value;
  item->key[0] = key;
  item->key[1] = ~key;
  mica_value(item->value, key, 0);
  uint64_t slot = hash >> 48 << 48 | (uint64_t)thread << 40 | (own->tail + 1);
  own->tail++;
  mica_lock(bucket);
  unsigned at = 0;
  while (at < MICA_SLOTS && bucket->slots[at] != 0 && mica_item_at(mica, bucket->slots[at]))
    at++;
  if (at == MICA_SLOTS) {
    at = (unsigned)(hash >> 32) % MICA_SLOTS;
    own->evicted++;
    own->evicted_updates += mica_item_at(mica, bucket->slots[at])->value[0];
  }
  bucket->slots[at] = slot;
  mica_unlock(bucket);
}

static inline void mica_update(struct mica *mica, struct mica_thread *own, uint64_t hash,
                               uint64_t key) {
  struct mica_bucket *bucket = mica_bucket_of(mica, hash);
  mica_lock(bucket);
  int at = mica_find(mica, bucket, hash, key);
  if (at >= 0) {
    uint64_t *value = mica_item_at(mica, bucket->slots[at])->value;
    if (BROKEN == VALUE_TORN)
      value[0]++;
    else if (BROKEN != UPDATE_LOST)
      mica_value(value, key, value[0] + 1);
    own->updates++;
  } else {
    own->missed++;
  }
  mica_unlock(bucket);
}

static void mica_load(struct tenant *tenant) {
  struct mica *mica = tenant->state =
      arena_take(&tenant->arena, sizeof *mica + tenant->threads * sizeof(struct mica_thread));
  uint64_t records = tenant->size, buckets = 1;
  while (buckets * MICA_SLOTS / 2 < records)
    buckets *= 2;
  mica->buckets = arena_take(&tenant->arena, buckets * sizeof *mica->buckets);
  mica->bucket_mask = buckets - 1;
  struct ycsb_zipf zipf = ycsb_zipf_over(records);
  uint64_t requests = tenant->units * MICA_BATCH;
  for (unsigned thread = 0; thread < tenant->threads; thread++) {
    struct mica_thread *own = &mica->threads[thread];
    own->log_items = records / tenant->threads + 1 + requests / 16;
    own->log = arena_take(&tenant->arena, own->log_items * sizeof *own->log);
    own->requests = ycsb_requests(&tenant->requests, tenant->workload, &zipf, thread,
                                  tenant->threads, requests);
  }
  for (uint64_t key = 0; key < records; key++) {
    unsigned thread = (unsigned)(key % tenant->threads);
    mica_insert(mica, &mica->threads[thread], thread, mica_hash(key), key);
  }
}

static void mica_work(struct tenant *tenant, unsigned thread, uint64_t unit) {
  struct mica *mica = tenant->state;
  struct mica_thread *own = &mica->threads[thread];
  const struct ycsb_request *batch = &own->requests[unit * MICA_BATCH];
  uint64_t hashes[MICA_BATCH];
  for (unsigned i = 0; i < MICA_BATCH; i++) {
    hashes[i] = mica_hash(batch[i].key);
    __builtin_prefetch(mica_bucket_of(mica, hashes[i]));
  }
  for (unsigned i = 0; i < MICA_BATCH; i++) {
    const struct mica_bucket *bucket = mica_bucket_of(mica, hashes[i]);
    for (unsigned at = 0; at < MICA_SLOTS; at++) {
      uint64_t slot = atomic_load_explicit(&bucket->slots[at], memory_order_relaxed);
      const char *item = slot == 0 || slot >> 48 != hashes[i] >> 48
                             ? NULL
                             : (const char *)mica_item_at(mica, slot);
      if (item != NULL) {
        __builtin_prefetch(item);
        __builtin_prefetch(item + ARENA_LINE_BYTES);
      }
    }
  }
  for (unsigned i = 0; i < MICA_BATCH; i++) {
    uint64_t key = batch[i].key;
    if (batch[i].kind == YCSB_READ || batch[i].kind == YCSB_MODIFY)
      mica_get(mica, own, hashes[i], key);
    if (batch[i].kind == YCSB_UPDATE || batch[i].kind == YCSB_MODIFY)
      mica_update(mica, own, hashes[i], key);
    else if (batch[i].kind == YCSB_INSERT)
      mica_insert(mica, own, thread, hashes[i], key);
  }
}

// Every item is whole and in its bucket, no update is lost but with its item, and hardly any
// request missed.
static bool mica_is_right(const struct tenant *tenant) {
  struct mica *mica = tenant->state;
  uint64_t updates = 0, done = 0, torn = 0, found = 0, missed = 0, kept = 0, all = 0;
  for (uint64_t bucket = 0; bucket <= mica->bucket_mask; bucket++)
    for (unsigned at = 0; at < MICA_SLOTS; at++) {
      uint64_t slot = mica->buckets[bucket].slots[at];
      const struct mica_item *item = slot == 0 ? NULL : mica_item_at(mica, slot);
      if (item == NULL)
        continue;
      uint64_t hash = mica_hash(item->key[0]);
      if ((hash & mica->bucket_mask) != bucket || hash >> 48 != slot >> 48 ||
          !mica_value_is_whole(item->value, item->key[0]))
        return false;
      updates += item->value[0];
      kept++;
    }
  for (unsigned thread = 0; thread < tenant->threads; thread++) {
    const struct mica_thread *own = &mica->threads[thread];
    updates += own->evicted_updates;
    kept += own->evicted;
    all += own->tail;
    done += own->updates;
    torn += own->torn;
    found += own->found;
    missed += own->missed;
  }
  printf("mica: %lu requests found, %lu missed, %lu updates\n", (unsigned long)found,
         (unsigned long)missed, (unsigned long)done);
  return torn == 0 && updates == done && kept == all && missed * 10 <= found + done;
}

static const struct tenant_kind mica_kind = {"mica", true, mica_load, mica_work, mica_is_right};

#endif
