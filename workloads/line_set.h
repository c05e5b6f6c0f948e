// SPDX-License-Identifier: Apache-2.0
//
// Which lines of a piece of memory a thread has written since it last flushed them, so that each is
// flushed once. Volatile, and of one thread alone.
#ifndef LINE_SET_H
#define LINE_SET_H

#include <stdint.h>
#include <stdlib.h>

#include "persist.h"

struct line_set {
  const char *start; // of the memory, at a line
  size_t words;
  uint64_t *is_written; // a bit for each line
};

// Of `bytes` from `start`, none of which is written. Ends the program if there is no memory.
static inline struct line_set line_set_new(const void *start, size_t bytes) {
  size_t words = (bytes / LINE_BYTES + 1 + 63) / 64;
  struct line_set set = {start, words, calloc(words, sizeof(uint64_t))};
  if (set.is_written == NULL) {
    perror("no memory for a set of lines");
    exit(EXIT_FAILURE);
  }
  return set;
}

static inline void line_set_add(struct line_set *set, const void *start, size_t bytes) {
  size_t first = (size_t)((const char *)start - set->start) / LINE_BYTES;
  size_t last = (size_t)((const char *)start + bytes - 1 - set->start) / LINE_BYTES;
  for (size_t line = first; line <= last; line++)
    set->is_written[line / 64] |= UINT64_C(1) << line % 64;
}

// Flushes every line of the set, in ascending order, and empties it. Durable after `fence`.
static inline void line_set_flush(struct line_set *set, enum flush flush) {
  for (size_t word = 0; word < set->words; word++)
    for (; set->is_written[word] != 0; set->is_written[word] &= set->is_written[word] - 1) {
      size_t line = word * 64 + (size_t)__builtin_ctzll(set->is_written[word]);
      flush_range(flush, set->start + line * LINE_BYTES, LINE_BYTES);
    }
}

#endif
