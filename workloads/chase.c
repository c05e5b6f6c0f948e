// SPDX-License-Identifier: Apache-2.0
//
// Pointer chase: loads that each depend on the one before, which shows the latency of the memory;
// several independent chains side by side show how many misses the machine overlaps.
//
// The nodes, one in each cache line, form a single circle in random order. Every chain walks a part
// of it and must arrive where the order of the circle says.
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "region.h"
#include "scramble.h"

static const char usage[] =
    "chase [-s SIZE (bytes, K, M or G)] [-n HOPS_PER_CHAIN] [-c CHAINS (1, 2, 4, 8 or 16)]";

enum { CHAINS_MAX = 16 };

static const uint64_t size_max = UINT64_C(16) << 30;

struct node {
  _Alignas(LINE_BYTES) struct node *next;
  uint64_t position; // in the circle
};

static void *allocate(size_t count, size_t bytes) {
  void *memory =
      aligned_alloc(LINE_BYTES, (count * bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
  if (memory == NULL) {
    perror("no memory");
    exit(EXIT_FAILURE);
  }
  return memory;
}

// The nodes in the order of the circle: a shuffle (Fisher and Yates).
static struct node **make_circle(size_t count) {
  struct node *nodes = allocate(count, sizeof *nodes);
  struct node **circle = allocate(count, sizeof *circle);
  for (size_t i = 0; i < count; i++) {
    size_t other = scramble(i) % (i + 1);
    circle[i] = circle[other];
    circle[other] = &nodes[i];
  }
  for (size_t i = 0; i < count; i++)
    *circle[i] = (struct node){.next = circle[i + 1 < count ? i + 1 : 0], .position = i};
  return circle;
}

// With `chains` a constant the positions stay in registers, as far as these suffice, and a hop is
// one load and nothing else.
static inline __attribute__((always_inline)) void hop(const struct node **positions, uint64_t hops,
                                                      unsigned chains) {
  const struct node *at[CHAINS_MAX];
#pragma GCC unroll 16
  for (unsigned i = 0; i < chains; i++)
    at[i] = positions[i];
  for (uint64_t n = 0; n < hops; n++) {
#pragma GCC unroll 16
    for (unsigned i = 0; i < chains; i++)
      at[i] = at[i]->next;
  }
#pragma GCC unroll 16
  for (unsigned i = 0; i < chains; i++)
    positions[i] = at[i];
}

static void chase(const struct node **positions, uint64_t hops, unsigned chains) {
  switch (chains) {
  case 1:
    return hop(positions, hops, 1);
  case 2:
    return hop(positions, hops, 2);
  case 4:
    return hop(positions, hops, 4);
  case 8:
    return hop(positions, hops, 8);
  case 16:
    return hop(positions, hops, 16);
  }
}

int main(int count, char **values) {
  static const struct option options[] = {{0}};
  uint64_t size = 1 << 20, hops = 100000;
  unsigned chains = 1;
  for (int option; (option = getopt_long(count, values, "s:n:c:", options, NULL)) != -1;)
    switch (option) {
    case 's':
      size = number_option(usage, "-s", optarg, LINE_BYTES, size_max);
      break;
    case 'n':
      hops = number_option(usage, "-n", optarg, 0, UINT64_MAX);
      break;
    case 'c':
      chains = (unsigned)number_option(usage, "-c", optarg, 1, CHAINS_MAX);
      break;
    default:
      usage_error(usage, "wrong option");
    }
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  if ((chains & (chains - 1)) != 0)
    usage_error(usage, "-c takes a power of two, not %u", chains);

  size_t nodes = size / LINE_BYTES;
  struct node **circle = make_circle(nodes);
  const struct node *positions[CHAINS_MAX];
  for (unsigned i = 0; i < chains; i++)
    positions[i] = circle[nodes / chains * i];

  region_begin();
  chase(positions, hops, chains);
  region_end();

  bool is_right = true;
  for (unsigned i = 0; i < chains; i++)
    is_right &= positions[i]->position == (nodes / chains * i + hops % nodes) % nodes;
  printf("chase: nodes=%zu chains=%u hops=%" PRIu64 " %s\n", nodes, chains, hops,
         is_right ? "ok" : "WRONG");
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
