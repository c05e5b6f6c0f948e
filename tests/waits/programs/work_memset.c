// SPDX-License-Identifier: Apache-2.0
//
// The same memory is set over and over.
#include <string.h>

#include "working.h"

enum { SETS = 20000 };

static char memory[4096];
static void *(*volatile set)(void *, int, size_t) = memset;

static uint64_t run(void) {
  for (unsigned round = 0; round < SETS; round++)
    set(memory, 0, sizeof memory);
  return SETS * 8;
}
