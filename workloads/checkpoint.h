// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of loops. The work of a thread is a fixed sequence of loop regions; at the end of
// each the lines written in it are flushed and fenced, and then the number of finished regions, in
// a line of the thread's own, is persisted. What a crash leaves of the region after that is
// computed again.
//
// The level says which loops are regions. `barrier`: all that a thread does between two barriers.
// `coarse`: one block, row, task or tile. `fine`: one iteration of the loop inside it.
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "crash.h"
#include "options.h"
#include "persist.h"

enum persist_level { LEVEL_BARRIER, LEVEL_COARSE, LEVEL_FINE };

static const char *const persist_level_names[] = {"barrier", "coarse", "fine"};

// In persistent memory; only its thread writes it.
struct loop_index {
  _Alignas(LINE_BYTES) uint64_t regions_finished;
};

static inline enum persist_level persist_level_option(const char *usage, const char *text) {
  for (size_t i = 0; i < sizeof persist_level_names / sizeof *persist_level_names; i++)
    if (strcmp(persist_level_names[i], text) == 0)
      return (enum persist_level)i;
  usage_error(usage, "--persist-level takes barrier, coarse or fine, not '%s'", text);
}

// Ends regions whose lines have been flushed: once their number is durable, so are they.
static inline void finish_regions(enum flush flush, struct loop_index *index, uint64_t count) {
  fence(flush);
  index->regions_finished += count;
  persist(flush, index, sizeof *index);
  crash_point();
}

static inline void finish_region(enum flush flush, struct loop_index *index) {
  finish_regions(flush, index, 1);
}

#endif
