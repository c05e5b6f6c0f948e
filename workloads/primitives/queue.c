// SPDX-License-Identifier: Apache-2.0
//
// Linear queue: an array of nodes that are used in turn, and where its front and its rear are. A
// read and an update mean any element, a change appends one at the rear or takes the one at the
// front.
//
// Without a log each of these is one store of 8 bytes, of the rear behind a durable element or of
// the front, so it is there as a whole or not at all.
#define PROGRAM "queue"

#include "shadow.h"

static const uint64_t magic = UINT64_C(0x312d455551504946); // "FIPQUE-1"

// Elements are counted from the first that ever was; a position in the array is this modulo the
// nodes.
struct ends {
  alignas(LINE_BYTES) uint64_t front;
  uint64_t rear, stamp;
};
_Static_assert(sizeof(struct ends) == LINE_BYTES, "a stamp lies in the line that it is about");

static size_t structure_bytes(const struct set *set) {
  (void)set;
  return sizeof(struct ends);
}

static void prepare_locks(void) {}
static void repair_structure(struct set *set) { (void)set; }

static unsigned thread_of_key(const struct set *set, uint64_t key) {
  (void)set, (void)key;
  return 0;
}

static bool key_is_initial(const struct set *set, uint64_t key) { return key < 2 * set->triples; }

// Neither the last element is taken nor one appended to a full queue.
static bool appends(const struct set *set, uint64_t front, uint64_t rear, uint64_t random) {
  return rear - front == 1 || (rear - front < set->keys && random >> 63 != 0);
}

static struct effects effects_of(const struct set *set, const struct shadow *shadow,
                                 unsigned thread, const struct operation *operation) {
  (void)thread;
  struct effects effects = {-1, -1, -1};
  uint64_t front = shadow->front, rear = shadow->rear;
  if (operation->has_update)
    effects.updated = (int64_t)((front + operation->update % (rear - front)) % set->keys);
  if (operation->has_change && appends(set, front, rear, operation->change))
    effects.inserted = (int64_t)(rear % set->keys);
  else if (operation->has_change)
    effects.removed = (int64_t)(front % set->keys);
  return effects;
}

// The payload at a position belongs to the node there.
static void append_element(const struct set *set, struct worker *worker, uint64_t sequence,
                           uint64_t version) {
  struct ends *ends = set->structure;
  uint64_t key = sequence % set->keys;
  set->nodes[key + 1] = (struct node){.entry = pack(key, key + 1), .sequence = sequence};
  written(&worker->transaction, &set->nodes[key + 1]);
  write_payload(set, worker, key + 1, key, version);
  ordered(&worker->transaction);
  store(&worker->transaction, &ends->rear, sequence + 1);
  store(&worker->transaction, &ends->stamp, worker->transaction.stamp);
}

static void take_element(const struct set *set, struct worker *worker, uint64_t front) {
  struct ends *ends = set->structure;
  read_payload(set, worker, low_of(set->nodes[front % set->keys + 1].entry));
  store(&worker->transaction, &ends->front, front + 1);
  store(&worker->transaction, &ends->stamp, worker->transaction.stamp);
}

static void perform(struct set *set, unsigned thread, const struct operation *operation) {
  struct worker *worker = &set->workers[thread];
  struct ends *ends = set->structure;
  bool is_logged = operation->is_logged && !operation->is_read;
  transaction_begin(&worker->transaction, is_logged ? set->settings.log : LOG_NONE,
                    operation->stamp);
  uint64_t front = load(&worker->transaction, &ends->front);
  uint64_t rear = load(&worker->transaction, &ends->rear);
  uint64_t key = (front + operation->update % (rear - front)) % set->keys;
  uint64_t payload = low_of(load(&worker->transaction, &set->nodes[key + 1].entry));
  if (operation->is_read) {
    read_payload(set, worker, payload);
    return;
  }
  if (operation->has_update)
    update_payload(set, worker, payload, key, operation);
  if (operation->has_change && appends(set, front, rear, operation->change))
    append_element(set, worker, rear, version_of(operation));
  else if (operation->has_change)
    take_element(set, worker, front);
  transaction_end(&worker->transaction);
}

static void fill(struct set *set, struct worker *worker) {
  for (uint64_t sequence = 0; key_is_initial(set, sequence); sequence++) {
    transaction_begin(&worker->transaction, LOG_NONE, 0);
    append_element(set, worker, sequence, 0);
  }
}

static void walk_structure(const struct set *set, struct contents *contents) {
  const struct ends *ends = set->structure;
  saw_stamp(set, contents, ends->stamp);
  if (ends->front >= ends->rear || ends->rear - ends->front > set->keys) {
    set_fault(contents, "front and rear contradict each other");
    return;
  }
  for (uint64_t sequence = ends->front; sequence < ends->rear; sequence++) {
    uint64_t key = sequence % set->keys;
    const struct node *node = &set->nodes[key + 1];
    if (node->sequence != sequence || node->entry != pack(key, key + 1))
      set_fault(contents, "an element is incomplete");
    if (!observe(set, contents, key + 1))
      return;
  }
}

#include "benchmark.h"
