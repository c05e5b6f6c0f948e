// SPDX-License-Identifier: Apache-2.0
//
// The requests of YCSB's workloads A, B, C, D and F (Cooper et al., SoCC 2010): keys by Zipf's law
// with the exponent 0.99, drawn as YCSB draws them (Gray et al., SIGMOD 1994); D reads what was
// inserted last. All requests of a thread are drawn before it runs, as if they had come from a
// client: drawing costs more instructions than answering.
#ifndef YCSB_H
#define YCSB_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "arena.h"
#include "scramble.h"

enum ycsb_kind { YCSB_READ, YCSB_UPDATE, YCSB_INSERT, YCSB_MODIFY };

struct ycsb_request {
  uint64_t key : 62;
  uint64_t kind : 2;
};

static const double ycsb_exponent = 0.99;

struct ycsb_zipf {
  uint64_t items;
  double zeta, alpha, eta;
};

static inline struct ycsb_zipf ycsb_zipf_over(uint64_t items) {
  struct ycsb_zipf zipf = {.items = items, .alpha = 1 / (1 - ycsb_exponent)};
  for (uint64_t i = 1; i <= items; i++)
    zipf.zeta += pow((double)i, -ycsb_exponent);
  double zeta_two = 1 + pow(0.5, ycsb_exponent);
  zipf.eta = (1 - pow(2.0 / (double)items, 1 - ycsb_exponent)) / (1 - zeta_two / zipf.zeta);
  return zipf;
}

// From 0, the most popular one.
static inline uint64_t ycsb_rank(const struct ycsb_zipf *zipf, uint64_t *state) {
  double part = (double)(scramble((*state)++) >> 11) * 0x1p-53;
  double scaled = part * zipf->zeta;
  if (scaled < 1)
    return 0;
  if (scaled < 1 + pow(0.5, ycsb_exponent))
    return 1;
  double rank = (double)zipf->items * pow(zipf->eta * part - zipf->eta + 1, zipf->alpha);
  return rank < (double)zipf->items ? (uint64_t)rank : zipf->items - 1;
}

// Percentages of reads, and what the others are.
static inline unsigned ycsb_reads(char workload) {
  return workload == 'A' || workload == 'F' ? 50 : workload == 'C' ? 100 : 95;
}

static inline enum ycsb_kind ycsb_other(char workload) {
  return workload == 'D' ? YCSB_INSERT : workload == 'F' ? YCSB_MODIFY : YCSB_UPDATE;
}

static inline bool ycsb_is_workload(char workload) {
  return workload >= 'A' && workload <= 'F' && workload != 'E';
}

// What a thread of `threads` asks for. Popular keys lie anywhere among the `records` that there are
// at first. Keys that it inserts are its own: `records` + `thread`, and so on by `threads`.
static inline struct ycsb_request *ycsb_requests(struct arena *arena, char workload,
                                                 const struct ycsb_zipf *zipf, unsigned thread,
                                                 unsigned threads, uint64_t count) {
  struct ycsb_request *requests = arena_take(arena, count * sizeof *requests);
  uint64_t state = scramble(thread * UINT64_C(0x10001) + (unsigned char)workload);
  uint64_t inserted = 0, records = zipf->items;
  for (uint64_t i = 0; i < count; i++) {
    bool is_read = scramble(state++) % 100 < ycsb_reads(workload);
    enum ycsb_kind kind = is_read ? YCSB_READ : ycsb_other(workload);
    uint64_t key;
    if (kind == YCSB_INSERT) {
      key = records + thread + inserted++ * threads;
    } else if (workload == 'D') {
      uint64_t age = ycsb_rank(zipf, &state);
      key = age < inserted ? records + thread + (inserted - 1 - age) * threads
                           : records - 1 - (age - inserted) % records;
    } else {
      key = scramble(ycsb_rank(zipf, &state)) % records;
    }
    requests[i] = (struct ycsb_request){.key = key, .kind = kind};
  }
  return requests;
}

#endif
