// SPDX-License-Identifier: Apache-2.0
//
// A ring of pointers is walked round and round.
#include "working.h"

enum { NODES = 8 };

struct node {
  struct node *volatile next;
};

static struct node nodes[NODES];
static struct node *volatile reached;

static uint64_t run(void) {
  for (unsigned i = 0; i < NODES; i++)
    nodes[i].next = &nodes[(i + 3) % NODES];
  struct node *at = nodes;
  for (unsigned step = 0; step < MILLION; step++)
    at = at->next;
  reached = at;
  return MILLION;
}
