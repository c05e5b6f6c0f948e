// SPDX-License-Identifier: Apache-2.0
#include "atomic_wait.h"

#include <atomic>

namespace {
alignas(64) std::atomic<unsigned> arrived;
alignas(64) std::atomic<unsigned> generation;
} // namespace

void atomic_wait_barrier(unsigned threads) {
  unsigned own = generation.load();
  if (arrived.fetch_add(1) + 1 == threads) {
    arrived.store(0);
    generation.fetch_add(1);
    generation.notify_all();
  } else {
    generation.wait(own);
  }
}
