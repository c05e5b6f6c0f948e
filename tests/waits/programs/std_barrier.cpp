// SPDX-License-Identifier: Apache-2.0
#include "std_barrier.h"

#include <barrier>

namespace {
std::barrier barrier(STD_BARRIER_THREADS);
} // namespace

void std_barrier_wait() { barrier.arrive_and_wait(); }
