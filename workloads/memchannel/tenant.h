// SPDX-License-Identifier: Apache-2.0
//
// A program among those that share the pool. Its state lies at the beginning of its arena. A unit
// of work is an operation of a store, some points of a grid, or some edges of a graph.
#ifndef TENANT_H
#define TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"

struct tenant;

struct tenant_kind {
  const char *name;
  bool has_workload; // of YCSB
  // Makes the state, in a process apart.
  void (*load)(struct tenant *tenant);
  // Does one unit of a thread's work.
  void (*work)(struct tenant *tenant, unsigned thread, uint64_t unit);
  // Whether what the threads have left is right, in a process apart.
  bool (*is_right)(const struct tenant *tenant);
};

struct tenant {
  const struct tenant_kind *kind;
  struct arena arena;    // in the pool
  struct arena requests; // not in the pool: what has come from clients
  void *state;
  unsigned threads;
  uint64_t units; // of each thread
  uint64_t size;  // records of a store, edge of a grid, log2 of the vertices of a graph, lines
  char workload;
};

#endif
