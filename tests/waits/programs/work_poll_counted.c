// SPDX-License-Identifier: Apache-2.0
//
// A poll that gives up after so many looks. The word changes meanwhile, but never to what is waited
// for.
#include <stdatomic.h>

#define OTHER store
#include "working.h"

enum { LOOKS = 200000, NEVER = 1000 };

static atomic_uint word;

static void store(void) {
  for (unsigned round = 0; round < NEVER; round++)
    atomic_store(&word, round);
}

static uint64_t run(void) {
  unsigned looks = 0;
  while (looks < LOOKS && atomic_load(&word) != NEVER) {
    __builtin_ia32_pause();
    looks++;
  }
  return LOOKS * 3;
}
