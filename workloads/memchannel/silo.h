// SPDX-License-Identifier: Apache-2.0
//
// An ordered transactional store after Silo (Tu et al., SOSP 2013): records of 8-byte keys and 100
// bytes in a B+-tree, and transactions that lock nothing until they commit. A commit locks what is
// written, checks that what was read is unchanged, and gives all of it a number that is greater
// than any that it read or wrote, and of the present epoch. Transactions are those of Silo's YCSB:
// one request each, and one that modifies reads and writes.
#ifndef SILO_H
#define SILO_H

#include "broken.h"
#include "scramble.h"
#include "silo_tree.h"
#include "tenant.h"
#include "ycsb.h"

enum { SILO_VALUE_WORDS = 13, SILO_SET_MAX = 4, SILO_EPOCH_BITS = 40 };

// An epoch lasts for so many transactions of the first thread. Silo's lasts 40 ms.
enum { SILO_EPOCH_TRANSACTIONS = 4096 };

// The number's lowest bit says that the record is locked, the next that it is not there yet.
static const uint64_t silo_locked = 1, silo_absent = 2, silo_one = 4;

struct silo_record {
  _Atomic uint64_t number;
  uint64_t key;
  uint64_t value[SILO_VALUE_WORDS]; // how often it was written, and words that follow from that
};

struct silo_thread {
  struct arena nodes; // where it takes nodes and records from
  const struct ycsb_request *requests;
  uint64_t number; // of its last transaction
  uint64_t committed, writes, inserts, aborted, missed, torn;
  uint64_t seen[SILO_VALUE_WORDS];
} __attribute__((aligned(64)));

struct silo {
  struct silo_tree tree;
  _Atomic uint64_t epoch;
  struct silo_thread threads[];
};

// What a transaction has read, and what it will write.
struct silo_transaction {
  struct {
    struct silo_record *record;
    uint64_t number;
  } reads[SILO_SET_MAX];
  struct {
    const struct silo_node *leaf;
    uint64_t version;
  } absences[SILO_SET_MAX]; // leaves that did not have a key
  struct silo_record *writes[SILO_SET_MAX];
  unsigned read, absent, written;
  bool modifies; // what it writes follows from what it has read
};

static inline void silo_value(uint64_t *value, uint64_t key, uint64_t writes) {
  value[0] = writes;
  for (unsigned word = 1; word < SILO_VALUE_WORDS; word++)
    value[word] = key * 17 + writes + word;
}

static inline bool silo_value_is_whole(const uint64_t *value, uint64_t key) {
  return value[SILO_VALUE_WORDS - 1] == key * 17 + value[0] + SILO_VALUE_WORDS - 1;
}

// Reads the record of a key into `seen`; whether there is one.
static inline bool silo_read(struct silo *silo, struct silo_transaction *transaction, uint64_t key,
                             uint64_t *seen, struct silo_record **found) {
  struct silo_found in_tree = silo_tree_find(&silo->tree, key);
  struct silo_record *record = in_tree.record;
  *found = record;
  if (record == NULL) {
    transaction->absences[transaction->absent].leaf = in_tree.leaf;
    transaction->absences[transaction->absent++].version = in_tree.version;
    return false;
  }
  for (;;) {
    uint64_t before = atomic_load_explicit(&record->number, memory_order_acquire);
    if (before & silo_locked)
      continue;
    memcpy(seen, record->value, sizeof record->value);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&record->number, memory_order_relaxed) != before)
      continue;
    transaction->reads[transaction->read].record = record;
    transaction->reads[transaction->read++].number = before;
    return !(before & silo_absent);
  }
}

static inline void silo_lock(struct silo_record *record) {
  for (;;) {
    uint64_t number = atomic_load_explicit(&record->number, memory_order_relaxed);
    if (!(number & silo_locked) &&
        atomic_compare_exchange_weak_explicit(&record->number, &number, number | silo_locked,
                                              memory_order_acquire, memory_order_relaxed))
      return;
  }
}

static inline bool silo_writes(const struct silo_transaction *transaction,
                               const struct silo_record *record) {
  for (unsigned i = 0; i < transaction->written; i++)
    if (transaction->writes[i] == record)
      return true;
  return false;
}

// Whether what was read is as it was, and nobody else is about to change it.
static inline bool silo_is_unchanged(const struct silo_transaction *transaction) {
  for (unsigned i = 0; i < transaction->read; i++) {
    const struct silo_record *record = transaction->reads[i].record;
    uint64_t now = atomic_load_explicit(&record->number, memory_order_acquire);
    bool is_others = now & silo_locked && !silo_writes(transaction, record);
    if ((now & ~silo_locked) != transaction->reads[i].number || is_others)
      return false;
  }
  for (unsigned i = 0; i < transaction->absent; i++)
    if (!silo_node_is_still(transaction->absences[i].leaf, transaction->absences[i].version))
      return false;
  return true;
}

// Locks, checks, and gives what is written its next value and number; whether it could.
static inline bool silo_commit(struct silo *silo, struct silo_thread *own,
                               struct silo_transaction *transaction) {
  // All lock in the order of addresses, so that no two wait for each other.
  struct silo_record **writes = transaction->writes;
  for (unsigned i = 1; i < transaction->written; i++)
    for (unsigned j = i; j > 0 && writes[j - 1] > writes[j]; j--) {
      struct silo_record *greater = writes[j - 1];
      writes[j - 1] = writes[j];
      writes[j] = greater;
    }
  for (unsigned i = 0; i < transaction->written; i++)
    silo_lock(writes[i]);
  // What is locked is seen before anything is checked; who locks nothing orders nothing.
  if (transaction->written > 0)
    atomic_thread_fence(memory_order_seq_cst);
  uint64_t epoch = atomic_load_explicit(&silo->epoch, memory_order_acquire);
  bool is_valid = BROKEN == NO_VALIDATION || silo_is_unchanged(transaction);
  uint64_t number = own->number;
  for (unsigned i = 0; i < transaction->read; i++)
    if (transaction->reads[i].number > number)
      number = transaction->reads[i].number;
  for (unsigned i = 0; i < transaction->written; i++)
    if (writes[i]->number > number)
      number = writes[i]->number;
  number = (number & ~(silo_locked | silo_absent)) + silo_one;
  if (number >> SILO_EPOCH_BITS < epoch)
    number = epoch << SILO_EPOCH_BITS;
  for (unsigned i = 0; i < transaction->written; i++) {
    struct silo_record *record = writes[i];
    uint64_t writes_before = transaction->modifies ? own->seen[0] : record->value[0];
    if (is_valid && BROKEN == VALUE_TORN)
      record->value[0]++;
    else if (is_valid && BROKEN != UPDATE_LOST)
      silo_value(record->value, record->key, writes_before + 1);
    uint64_t before = record->number & ~silo_locked;
    atomic_store_explicit(&record->number, is_valid ? number : before, memory_order_release);
  }
  if (is_valid)
    own->number = number;
  return is_valid;
}

static inline struct silo_record *silo_record_new(struct silo_thread *own, uint64_t key,
                                                  uint64_t number) {
  struct silo_record *record = arena_take(&own->nodes, sizeof *record);
  record->key = key;
  record->number = number;
  silo_value(record->value, key, 0);
  return record;
}

// One transaction; false if it has to be tried again.
static inline bool silo_try(struct silo *silo, struct silo_thread *own,
                            struct ycsb_request request) {
  struct silo_transaction transaction;
  transaction.read = transaction.absent = transaction.written = 0;
  transaction.modifies = request.kind == YCSB_MODIFY;
  struct silo_record *record = NULL;
  if (request.kind == YCSB_INSERT) {
    // It is in the tree before it is committed, and nobody takes it for there until then.
    struct silo_record *fresh = silo_record_new(own, request.key, silo_absent);
    struct silo_record *present = silo_tree_insert(&silo->tree, &own->nodes, request.key, fresh);
    transaction.writes[transaction.written++] = present != NULL ? present : fresh;
  } else if (request.kind == YCSB_UPDATE) {
    record = silo_tree_find(&silo->tree, request.key).record;
    if (record != NULL)
      transaction.writes[transaction.written++] = record;
  } else {
    bool is_there = silo_read(silo, &transaction, request.key, own->seen, &record);
    own->torn += is_there && !silo_value_is_whole(own->seen, request.key);
    if (request.kind == YCSB_MODIFY && is_there)
      transaction.writes[transaction.written++] = record;
    own->missed += !is_there;
  }
  if (!silo_commit(silo, own, &transaction))
    return false;
  own->inserts += request.kind == YCSB_INSERT;
  own->writes += transaction.written;
  return true;
}

static void silo_work(struct tenant *tenant, unsigned thread, uint64_t unit) {
  struct silo *silo = tenant->state;
  struct silo_thread *own = &silo->threads[thread];
  while (!silo_try(silo, own, own->requests[unit]))
    own->aborted++;
  own->committed++;
  if (thread == 0 && own->committed % SILO_EPOCH_TRANSACTIONS == 0)
    atomic_fetch_add_explicit(&silo->epoch, 1, memory_order_release);
}

static void silo_load(struct tenant *tenant) {
  struct silo *silo = tenant->state =
      arena_take(&tenant->arena, sizeof *silo + tenant->threads * sizeof(struct silo_thread));
  uint64_t records = tenant->size;
  struct silo_thread loader = {.nodes = tenant->arena};
  silo->tree.root = silo_node_new(&loader.nodes, true);
  silo->epoch = 1;
  // In an order in which no leaf stays half empty: a prime's multiples go over all keys.
  const uint64_t prime = UINT64_C(2654435761);
  for (uint64_t i = 0; i < records; i++) {
    uint64_t key = i * prime % records;
    silo_tree_insert(&silo->tree, &loader.nodes, key, silo_record_new(&loader, key, silo_one));
  }
  tenant->arena = loader.nodes;
  struct ycsb_zipf zipf = ycsb_zipf_over(records);
  for (unsigned thread = 0; thread < tenant->threads; thread++) {
    struct silo_thread *own = &silo->threads[thread];
    // What it inserts: a record, and at the worst a leaf with what is above it, of each.
    uint64_t room = tenant->workload == 'D' ? tenant->units * 1024 : 0;
    own->nodes.next = arena_take(&tenant->arena, room);
    own->nodes.end = own->nodes.next + room;
    own->requests = ycsb_requests(&tenant->requests, tenant->workload, &zipf, thread,
                                  tenant->threads, tenant->units);
  }
}

// Sums over a subtree, whose keys lie above `low` and up to `high`; false if they do not.
struct silo_sums {
  uint64_t records, writes, last;
  bool is_first, is_right;
};

static void silo_sum(const struct silo_node *node, struct silo_sums *sums) {
  if (!node->is_leaf) {
    for (unsigned i = 0; i <= node->count; i++)
      silo_sum(node->below[i], sums);
    return;
  }
  for (unsigned i = 0; i < node->count; i++) {
    const struct silo_record *record = node->below[i];
    bool is_ordered = sums->is_first || node->keys[i] > sums->last;
    sums->is_right &= is_ordered && record->key == node->keys[i] &&
                      !(record->number & (silo_locked | silo_absent)) &&
                      silo_value_is_whole(record->value, record->key);
    sums->is_first = false;
    sums->last = node->keys[i];
    sums->records++;
    sums->writes += record->value[0];
  }
}

// The tree has every key once and in order, and every committed write is in its record.
static bool silo_is_right(const struct tenant *tenant) {
  const struct silo *silo = tenant->state;
  struct silo_sums sums = {.is_first = true, .is_right = true};
  silo_sum(silo->tree.root, &sums);
  uint64_t committed = 0, writes = 0, inserts = 0, aborted = 0, missed = 0, torn = 0;
  for (unsigned thread = 0; thread < tenant->threads; thread++) {
    const struct silo_thread *own = &silo->threads[thread];
    committed += own->committed;
    writes += own->writes;
    inserts += own->inserts;
    aborted += own->aborted;
    missed += own->missed;
    torn += own->torn;
  }
  printf("silo: %lu committed, %lu writes, %lu aborted\n", (unsigned long)committed,
         (unsigned long)writes, (unsigned long)aborted);
  return sums.is_right && torn == 0 && missed == 0 && sums.writes == writes &&
         sums.records == tenant->size + inserts;
}

static const struct tenant_kind silo_kind = {"silo", true, silo_load, silo_work, silo_is_right};

#endif
