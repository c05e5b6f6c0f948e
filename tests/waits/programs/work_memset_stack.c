// SPDX-License-Identifier: Apache-2.0
//
// Memory of the own stack frame is set over and over, and read behind the loop.
#include <string.h>

#include "working.h"

enum { SETS = 50000 };

static void *(*volatile set)(void *, int, size_t) = memset;
static volatile unsigned sum;

static uint64_t run(void) {
  unsigned char memory[128];
  for (unsigned round = 0; round < SETS; round++)
    set(memory, 1, sizeof memory);
  for (unsigned i = 0; i < sizeof memory; i++)
    sum += memory[i];
  return SETS * 6;
}
