// SPDX-License-Identifier: Apache-2.0
//
// Where flushes and fences stand. The programs say which lines have to be durable before what
// (`flush_bytes`, `order`); the placement decides how many fences that takes, and whether lines are
// flushed as the authors of the study did (`--study-placement`): a fence before and behind each
// flush, and one line too many of a range that ends at a line's end.
#ifndef PLACEMENT_H
#define PLACEMENT_H

#include "persist.h"

static struct placement {
  enum flush flush;
  unsigned fences_per_flush; // 0: a fence only where order demands one
  bool is_of_study;
} placement;

// Flushes every line of a range. Durable after `order`.
static inline void flush_bytes(const void *start, size_t bytes) {
  if (placement.flush == FLUSH_NONE)
    return;
  const char *line = (const char *)((uintptr_t)start & ~(uintptr_t)(LINE_BYTES - 1));
  const char *last = (const char *)start + bytes - !placement.is_of_study;
  for (; line <= last; line += LINE_BYTES) {
    if (placement.fences_per_flush == 2)
      store_fence();
    flush_range(placement.flush, line, 1);
    if (placement.fences_per_flush != 0)
      store_fence();
  }
}

// What was flushed is durable before what is stored from here on. Where each flush has a fence of
// its own that is so already.
static inline void order(void) {
  if (placement.flush == FLUSH_NONE)
    __asm__ volatile("" ::: "memory");
  else if (placement.fences_per_flush == 0)
    store_fence();
}

#endif
