// SPDX-License-Identifier: Apache-2.0
//
// A flag for each round.
#include <stdatomic.h>

#include "rotating_news.h"
#include "wait_while.h"

struct flag {
  _Alignas(LINE_BYTES) atomic_bool is_set;
};

static struct flag flags[ROUNDS];

static void tell(unsigned round) { atomic_store(&flags[round].is_set, true); }

static void wait_for(unsigned round) { WAIT_WHILE(!atomic_load(&flags[round].is_set)); }
