// SPDX-License-Identifier: Apache-2.0
//
// What is measured: a point is a loop over groups of lines, which the loop stores to, flushes and
// fences as its action says, and a state in which the lines are when it begins.
#ifndef POINTS_H
#define POINTS_H

#include <stdio.h>

#include "persist.h"

enum action {
  NOTHING,      // what the timer itself takes
  STORE_FENCE,  // store to each line of a group, fence
  FLUSH_FENCE,  // flush each, fence
  PERSIST,      // store to each, flush each, fence
  UPDATE,       // load and store each, flush each, fence
  TWICE,        // twice in a row: store to the one line, flush it, fence
  READ,         // follow a chain through the lines
  NON_TEMPORAL, // store past the caches to each, fence
  UPDATE_PAST,  // load each and store past the caches to it, fence
  ACTIONS
};

// What has been done to the lines before.
enum state { DIRTY, CLEAN, ABSENT, FLUSHED, STATES };

enum arrangement { SEQUENTIAL, RANDOM };

static const char *const action_names[ACTIONS] = {"timer", "store", "flush",   "persist", "update",
                                                  "twice", "read",  "persist", "update"};
static const char *const state_names[STATES] = {"dirty", "clean", "absent", "flushed"};
static const char *const arrangement_names[] = {"sequential", "random"};

struct point {
  enum action action;
  enum flush flush; // of the action, or for FLUSHED what has flushed the lines
  enum state state;
  enum arrangement arrangement;
  unsigned lines; // of a group
  unsigned threads;
};

enum { POINTS_MAX = 512, LINES_MAX = 64, BATCH_LINES = 256, SINGLE_LINES = 64 };

struct points {
  struct point all[POINTS_MAX];
  unsigned count;
};

// How many groups a batch has: 256 lines in all, or 64 groups of one.
static inline unsigned point_groups(const struct point *point) {
  return point->lines == 1 ? SINGLE_LINES : BATCH_LINES / point->lines;
}

static inline const char *point_primitive(const struct point *point) {
  bool is_past = point->action == NON_TEMPORAL || point->action == UPDATE_PAST;
  return is_past ? "non-temporal" : flush_names[point->flush];
}

static inline void point_add(struct points *points, struct point point) {
  if (points->count < POINTS_MAX)
    points->all[points->count++] = point;
}

static inline void points_of_flush(struct points *points, enum flush flush) {
  for (unsigned lines = 1; lines <= LINES_MAX; lines *= 2) {
    point_add(points, (struct point){PERSIST, flush, DIRTY, SEQUENTIAL, lines, 1});
    point_add(points, (struct point){FLUSH_FENCE, flush, DIRTY, SEQUENTIAL, lines, 1});
  }
  for (unsigned lines = 1; lines <= LINES_MAX; lines *= 8) {
    point_add(points, (struct point){FLUSH_FENCE, flush, CLEAN, SEQUENTIAL, lines, 1});
    point_add(points, (struct point){FLUSH_FENCE, flush, ABSENT, SEQUENTIAL, lines, 1});
    point_add(points, (struct point){PERSIST, flush, ABSENT, RANDOM, lines, 1});
    point_add(points, (struct point){FLUSH_FENCE, flush, DIRTY, RANDOM, lines, 1});
  }
  point_add(points, (struct point){UPDATE, flush, ABSENT, RANDOM, 1, 1});
  point_add(points, (struct point){TWICE, flush, ABSENT, RANDOM, 1, 1});
  point_add(points, (struct point){READ, flush, FLUSHED, RANDOM, 1, 1});
}

// All points of one thread, then those of more: of what this processor has.
static inline void points_all(struct points *points, unsigned threads_max) {
  point_add(points, (struct point){NOTHING, FLUSH_NONE, DIRTY, SEQUENTIAL, 1, 1});
  point_add(points, (struct point){READ, FLUSH_NONE, DIRTY, RANDOM, 1, 1});
  point_add(points, (struct point){READ, FLUSH_NONE, ABSENT, RANDOM, 1, 1});
  point_add(points, (struct point){STORE_FENCE, FLUSH_NONE, DIRTY, SEQUENTIAL, 1, 1});
  for (enum flush flush = FLUSH_CLFLUSH; flush <= FLUSH_CVAP; flush++)
    if (flush_is_supported(flush))
      points_of_flush(points, flush);
#if defined(__x86_64__)
  for (unsigned lines = 1; lines <= LINES_MAX; lines *= 2)
    point_add(points, (struct point){NON_TEMPORAL, FLUSH_NONE, ABSENT, SEQUENTIAL, lines, 1});
  point_add(points, (struct point){NON_TEMPORAL, FLUSH_NONE, DIRTY, SEQUENTIAL, 8, 1});
  point_add(points, (struct point){UPDATE_PAST, FLUSH_NONE, ABSENT, RANDOM, 1, 1});
#endif
  for (unsigned threads = 1; threads < threads_max;) {
    threads = 2 * threads < threads_max ? 2 * threads : threads_max;
    for (enum flush flush = FLUSH_CLFLUSH; flush <= FLUSH_CVAP; flush++)
      if (flush_is_supported(flush))
        point_add(points, (struct point){PERSIST, flush, DIRTY, SEQUENTIAL, 8, threads});
  }
}

#endif
