// SPDX-License-Identifier: Apache-2.0
//
// A tree barrier: a thread waits for its children, tells its parent, waits for its parent, and lets
// its children go. Flags hold the number of the round, so none is ever reset.
#include <stdatomic.h>

#include "barrier_rounds.h"
#include "wait_while.h"

struct node {
  _Alignas(LINE_BYTES) atomic_uint has_arrived;
  _Alignas(LINE_BYTES) atomic_uint may_go;
};

static struct node nodes[THREADS];
static _Thread_local unsigned round_number;

static void barrier_wait(unsigned thread) {
  unsigned first = 2 * thread + 1;
  unsigned behind = first + 2 < THREADS ? first + 2 : THREADS;
  round_number++;
  for (unsigned child = first; child < behind; child++)
    WAIT_WHILE(atomic_load(&nodes[child].has_arrived) != round_number);
  if (thread != 0) {
    atomic_store(&nodes[thread].has_arrived, round_number);
    WAIT_WHILE(atomic_load(&nodes[thread].may_go) != round_number);
  }
  for (unsigned child = first; child < behind; child++)
    atomic_store(&nodes[child].may_go, round_number);
}
