// SPDX-License-Identifier: Apache-2.0
#include "std_latch.h"

#include <latch>
#include <memory>

namespace {
struct latches {
  latches() {
    for (auto &one : all)
      one = std::make_unique<std::latch>(STD_LATCH_THREADS);
  }
  std::unique_ptr<std::latch> all[STD_LATCHES];
};
latches the;
} // namespace

void std_latch_arrive_and_wait(unsigned latch) { the.all[latch]->arrive_and_wait(); }
