// SPDX-License-Identifier: Apache-2.0
//
// An operation's stores to persistent memory: as a transaction with an undo or a redo log, or
// without a log, where the order of its persists is all there is.
//
// A log is a line that says how far it is, and entries of one word each: where it lies, its value,
// and the number of the transaction. Entries of another number are not part of it, so a log is
// emptied by counting on. The parts of an entry lie in one line and its tag is stored last: an
// entry whose tag is durable is complete.
//
// Undo: the old value is durable before the word is changed in place. At the end what was changed
// is made durable, then the number of the finished transaction. Recovery puts the old values of an
// unfinished one back, the newest first.
// Redo: words are changed in the log only, where the transaction's own loads look first. At the end
// the entries are made durable, then their number and how many they are, which commits them; then
// they are copied to their places, and these made durable before the log is given up. Recovery
// copies what is committed and not given up once more.
//
// Nodes that nothing refers to yet are written in place (`written`) and are durable before whatever
// refers to them. Without a log `ordered` keeps what was stored before it in front of what is
// stored behind it; inside a logged transaction it does nothing, for all becomes visible at once.
#ifndef TRANSACTION_H
#define TRANSACTION_H

#include <stdio.h>
#include <stdlib.h>

#include "broken.h"
#include "placement.h"
#include "pool.h"

enum log { LOG_NONE, LOG_UNDO, LOG_REDO };

static const char *const log_names[] = {"none", "undo", "redo"};

enum { LOG_ENTRIES = 1020, DIRTY_LINES_MAX = 512 };

struct log_entry {
  uint64_t tag;   // number of the transaction << 32 | place of the word in the pool, in words
  uint64_t value; // undo: the old one, redo: the new one
};

struct log_area {
  alignas(LINE_BYTES) uint64_t finished; // the last transaction whose log is given up
  uint64_t committed;                    // redo: number << 32 | entries
  alignas(LINE_BYTES) struct log_entry entries[LOG_ENTRIES];
};

// Of one thread; volatile.
struct transaction {
  uint64_t *pool; // where places in it are counted from
  struct log_area *area;
  enum log log;   // of the operation under way
  uint64_t stamp; // of the operation under way: what its last store of each kind leaves behind
  uint32_t number;
  uint32_t entries;
  uint64_t filter; // redo: a bit for each word in the log, so that most loads need not look there
  uint32_t dirty;  // lines to be flushed
  const char *dirty_lines[DIRTY_LINES_MAX];
};

// Release order: stores reach the caches, and so the words of one line PM, in program order.
static inline void store_word(uint64_t *word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

__attribute__((noreturn)) static inline void transaction_failure(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(EXIT_FAILURE);
}

static inline void dirty_line(struct transaction *transaction, const void *address) {
  const char *line = (const char *)((uintptr_t)address & ~(uintptr_t)(LINE_BYTES - 1));
  for (uint32_t i = transaction->dirty; i-- > 0;)
    if (transaction->dirty_lines[i] == line)
      return;
  if (transaction->dirty == DIRTY_LINES_MAX)
    transaction_failure("a transaction writes more lines than it has room for");
  transaction->dirty_lines[transaction->dirty++] = line;
}

static inline bool flush_dirty(struct transaction *transaction) {
  bool is_any = transaction->dirty != 0;
  for (uint32_t i = 0; i < transaction->dirty; i++)
    flush_bytes(transaction->dirty_lines[i], LINE_BYTES);
  transaction->dirty = 0;
  return is_any;
}

// A line that nothing refers to yet has been written.
static inline void written(struct transaction *transaction, const void *line) {
  if (BROKEN != NODE_NOT_FLUSHED)
    dirty_line(transaction, line);
}

static inline void ordered(struct transaction *transaction) {
  if (transaction->log == LOG_NONE && BROKEN != NO_ORDER && flush_dirty(transaction))
    order();
}

static inline uint64_t entry_tag(const struct transaction *transaction, const uint64_t *word) {
  return (uint64_t)transaction->number << 32 | (uint64_t)(word - transaction->pool);
}

static inline uint64_t filter_bit(const uint64_t *word) {
  return UINT64_C(1) << ((uintptr_t)word / sizeof *word * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

static inline void append(struct transaction *transaction, const uint64_t *word, uint64_t value) {
  if (transaction->entries == LOG_ENTRIES)
    transaction_failure("a transaction has more entries than its log");
  struct log_entry *entry = &transaction->area->entries[transaction->entries++];
  store_word(&entry->value, value);
  store_word(&entry->tag, entry_tag(transaction, word));
  transaction->filter |= filter_bit(word);
}

static inline void persist_entries(const struct log_entry *first, size_t count) {
  if (BROKEN != LOG_NOT_FLUSHED)
    flush_bytes(first, count * sizeof *first);
  if (BROKEN != LOG_NOT_FLUSHED && BROKEN != LOG_NO_FENCE)
    order();
}

static inline uint64_t load(const struct transaction *transaction, const uint64_t *word) {
  if (transaction->log == LOG_REDO && (transaction->filter & filter_bit(word)) != 0) {
    uint64_t tag = entry_tag(transaction, word);
    for (uint32_t i = transaction->entries; i-- > 0;)
      if (transaction->area->entries[i].tag == tag)
        return transaction->area->entries[i].value;
  }
  return *(const volatile uint64_t *)word;
}

// Stores words that lie side by side, in their order.
static inline void store_words(struct transaction *transaction, uint64_t *words,
                               const uint64_t *values, size_t count) {
  if (transaction->log == LOG_REDO) {
    for (size_t i = 0; i < count; i++)
      append(transaction, &words[i], values[i]);
    return;
  }
  if (transaction->log == LOG_UNDO) {
    const struct log_entry *first = &transaction->area->entries[transaction->entries];
    for (size_t i = 0; i < count; i++)
      append(transaction, &words[i], words[i]);
    persist_entries(first, count);
  }
  for (size_t i = 0; i < count; i++)
    store_word(&words[i], values[i]);
  dirty_line(transaction, words);
}

static inline void store(struct transaction *transaction, uint64_t *word, uint64_t value) {
  store_words(transaction, word, &value, 1);
}

static inline void transaction_begin(struct transaction *transaction, enum log log,
                                     uint64_t stamp) {
  transaction->log = log;
  transaction->stamp = stamp;
  transaction->entries = 0;
  transaction->filter = 0;
  transaction->dirty = 0;
}

static inline void persist_header_word(uint64_t *word, uint64_t value) {
  if (BROKEN != COMMIT_LEFT_OUT)
    store_word(word, value);
  if (BROKEN == COMMIT_NOT_FLUSHED || BROKEN == COMMIT_LEFT_OUT)
    return;
  flush_bytes(word, sizeof *word);
  order();
}

static inline void copy_in_place(struct transaction *transaction) {
  for (uint32_t i = 0; i < transaction->entries; i++) {
    const struct log_entry *entry = &transaction->area->entries[i];
    uint64_t *word = transaction->pool + (uint32_t)entry->tag;
    store_word(word, entry->value);
    if (!placement.is_of_study && BROKEN != IN_PLACE_NOT_FLUSHED)
      dirty_line(transaction, word);
  }
}

static inline void commit_redo(struct transaction *transaction) {
  struct log_area *area = transaction->area;
  flush_dirty(transaction);
  persist_entries(area->entries, transaction->entries);
  persist_header_word(&area->committed, (uint64_t)transaction->number << 32 | transaction->entries);
  copy_in_place(transaction);
  if (flush_dirty(transaction))
    order();
  persist_header_word(&area->finished, transaction->number);
}

// When this returns, the operation is durable.
static inline void transaction_end(struct transaction *transaction) {
  if (transaction->log == LOG_NONE) {
    if (BROKEN != LINK_NOT_FLUSHED && flush_dirty(transaction))
      order();
    return;
  }
  if (transaction->entries == 0)
    return;
  if (transaction->log == LOG_REDO) {
    commit_redo(transaction);
  } else {
    if (BROKEN != IN_PLACE_NOT_FLUSHED && flush_dirty(transaction))
      order();
    persist_header_word(&transaction->area->finished, transaction->number);
  }
  transaction->number++;
}

static inline uint64_t *entry_word(const struct transaction *transaction,
                                   const struct log_entry *entry, size_t pool_bytes) {
  uint32_t place = (uint32_t)entry->tag;
  return place < pool_bytes / sizeof(uint64_t) ? transaction->pool + place : NULL;
}

static inline const char *roll_back(struct transaction *transaction, size_t pool_bytes) {
  struct log_area *area = transaction->area;
  uint32_t count = 0;
  while (count < LOG_ENTRIES && area->entries[count].tag >> 32 == area->finished + 1)
    count++;
  if (count == 0)
    return NULL;
  for (uint32_t i = count; i-- > 0;) {
    uint64_t *word = entry_word(transaction, &area->entries[i], pool_bytes);
    if (word == NULL)
      return "an entry of the log leads out of the pool";
    store_word(word, area->entries[i].value);
    flush_bytes(word, sizeof *word);
  }
  order();
  // The number is used up: entries that lie behind those of the next transaction are none of it.
  store_word(&area->finished, area->finished + 1);
  flush_bytes(&area->finished, sizeof area->finished);
  order();
  return NULL;
}

static inline const char *roll_forward(struct transaction *transaction, size_t pool_bytes) {
  struct log_area *area = transaction->area;
  uint64_t number = area->committed >> 32, count = (uint32_t)area->committed;
  if (number == area->finished)
    return NULL;
  if (number != area->finished + 1 || count > LOG_ENTRIES)
    return "the head of the log contradicts itself";
  for (uint64_t i = 0; i < count; i++) {
    uint64_t *word = entry_word(transaction, &area->entries[i], pool_bytes);
    if (area->entries[i].tag >> 32 != number || word == NULL)
      return "a committed log lacks an entry";
    store_word(word, area->entries[i].value);
    flush_bytes(word, sizeof *word);
  }
  order();
  store_word(&area->finished, number);
  flush_bytes(&area->finished, sizeof area->finished);
  order();
  return NULL;
}

// Takes up a thread's log as a run left it. NULL, or what is wrong with it.
static inline const char *transaction_recover(struct transaction *transaction, enum log log,
                                              size_t pool_bytes) {
  const char *fault = log == LOG_UNDO   ? roll_back(transaction, pool_bytes)
                      : log == LOG_REDO ? roll_forward(transaction, pool_bytes)
                                        : NULL;
  transaction->number = (uint32_t)transaction->area->finished + 1;
  return fault;
}

#endif
