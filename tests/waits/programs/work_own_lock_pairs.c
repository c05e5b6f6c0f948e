// SPDX-License-Identifier: Apache-2.0
//
// A lock of the program's own that nobody else wants is taken and given back.
#include <stdatomic.h>

#include "working.h"

enum { PAIRS = 50000 };

static atomic_flag is_held = ATOMIC_FLAG_INIT;

static uint64_t run(void) {
  for (unsigned pair = 0; pair < PAIRS; pair++) {
    while (atomic_flag_test_and_set_explicit(&is_held, memory_order_acquire))
      __builtin_ia32_pause();
    atomic_flag_clear_explicit(&is_held, memory_order_release);
  }
  return PAIRS * 4;
}
