// SPDX-License-Identifier: Apache-2.0
//
// What all structures share: nodes of one line, each with a payload of one line, in a pool; and the
// operations on them, which follow from seed, thread and position alone.
//
// The pool: header, a log for each thread, nodes, payloads, and what the structure has besides
// (roots, buckets), with a line behind it that belongs to nobody, as `--study-placement` flushes
// one too many. A reference is a position in the array of nodes or payloads; 0 is none.
//
// Every line that an operation changes says by which operation it was changed last: a payload in
// each of its words, others by a stamp that is stored behind what it stands for, in the same line.
// So recovery knows how far a run was without a record of its own for that (shadow.h).
#ifndef SET_H
#define SET_H

#include "scramble.h"
#include "settings.h"

enum { PAYLOAD_WORDS = LINE_BYTES / sizeof(uint64_t) };

struct node {
  alignas(LINE_BYTES) uint64_t entry; // key << 32 | payload
  uint64_t children[2], parent;       // of trees: the lower keys, the higher ones
  uint64_t is_red, is_live;           // of the red-black tree
  uint64_t sequence;                  // of the queue
  uint64_t stamp;
};

struct payload {
  alignas(LINE_BYTES) uint64_t words[PAYLOAD_WORDS];
};

// A stack of what is not in use; volatile, of one thread.
struct unused {
  uint64_t *indices;
  uint64_t count;
};

struct worker {
  alignas(LINE_BYTES) struct transaction transaction;
  struct unused nodes, payloads;
  uint64_t first_operation; // of this run
  uint64_t words_read;      // keeps reads from being optimised away
};

struct set {
  struct settings settings;
  uint64_t triples; // keys come in threes: 3n stays, 3n + 1 is there at first, 3n + 2 is not
  uint64_t keys;    // that there can be, and so the nodes in the pool
  struct pool_header *header;
  size_t pool_bytes;
  struct log_area *logs;
  struct node *nodes;
  struct payload *payloads;
  void *structure;
  struct worker *workers;
  uint64_t resumed; // operations that an earlier run has done
};

// One operation. Which keys it means the structure decides by the random numbers.
struct operation {
  bool is_read, is_logged, has_update, has_change;
  uint64_t update, change; // random numbers
  uint64_t stamp;          // thread << 40 | position + 1
};

enum { STAMP_THREAD_BIT = 40 };

static inline uint64_t share(uint64_t operations, unsigned threads, unsigned thread) {
  return operations / threads + (thread < operations % threads);
}

// What a thread does in its n-th operation, counted from 0.
static inline struct operation operation_of(const struct settings *settings, unsigned thread,
                                            uint64_t n) {
  uint64_t bits = scramble(settings->seed << 50 ^ (uint64_t)thread << STAMP_THREAD_BIT ^ n);
  uint64_t update = scramble(bits), change = scramble(update);
  return (struct operation){
      .is_read = (bits & 0xffff) * 100 < settings->read_percent * UINT64_C(0x10000),
      .is_logged = settings->log != LOG_NONE &&
                   (bits >> 16 & 0xffff) * 100 < settings->log_percent * UINT64_C(0x10000),
      .has_update = settings->modify != MODIFY_META,
      .has_change = settings->modify != MODIFY_DATA,
      .update = update,
      .change = change,
      .stamp = (uint64_t)thread << STAMP_THREAD_BIT | (n + 1)};
}

static inline uint64_t pack(uint64_t high, uint64_t low) { return high << 32 | low; }
static inline uint64_t high_of(uint64_t packed) { return packed >> 32; }
static inline uint64_t low_of(uint64_t packed) { return (uint32_t)packed; }

// A payload's word says which version of which key it is part of, and which word.
static inline uint64_t payload_word(uint64_t key, uint64_t version, size_t i) {
  return scramble(key) ^ (version << 3 | i);
}

static inline void payload_words(uint64_t key, uint64_t version, uint64_t words[PAYLOAD_WORDS]) {
  for (size_t i = 0; i < PAYLOAD_WORDS; i++)
    words[i] = payload_word(key, version, i);
}

// The version that an operation makes of its thread's keys.
static inline uint64_t version_of(const struct operation *operation) {
  return operation->stamp & ((UINT64_C(1) << STAMP_THREAD_BIT) - 1);
}

static inline uint64_t take_unused(struct unused *unused) {
  if (unused->count == 0)
    transaction_failure("the set has no room left");
  return unused->indices[--unused->count];
}

static inline void give_unused(struct unused *unused, uint64_t index) {
  unused->indices[unused->count++] = index;
}

static inline void read_payload(const struct set *set, struct worker *worker, uint64_t payload) {
  const struct payload *line = &set->payloads[payload];
  for (size_t i = 0; i < PAYLOAD_WORDS; i++)
    worker->words_read += load(&worker->transaction, &line->words[i]);
}

static inline void update_payload(const struct set *set, struct worker *worker, uint64_t payload,
                                  uint64_t key, const struct operation *operation) {
  uint64_t words[PAYLOAD_WORDS];
  payload_words(key, version_of(operation), words);
  store_words(&worker->transaction, set->payloads[payload].words, words, PAYLOAD_WORDS);
  ordered(&worker->transaction);
}

// A node with its payload, which nothing refers to yet.
static inline void write_payload(const struct set *set, struct worker *worker, uint64_t payload,
                                 uint64_t key, uint64_t version) {
  payload_words(key, version, set->payloads[payload].words);
  written(&worker->transaction, &set->payloads[payload]);
}

static inline void *set_allocate(size_t count, size_t bytes) {
  size_t rounded = (count * bytes + LINE_BYTES) / LINE_BYTES * LINE_BYTES;
  void *memory = aligned_alloc(LINE_BYTES, rounded);
  if (memory == NULL) {
    perror("no memory");
    exit(EXIT_FAILURE);
  }
  return memset(memory, 0, rounded);
}

#endif
