// SPDX-License-Identifier: Apache-2.0
//
// The same line is read and flushed over and over.
#include "working.h"

enum { FLUSHES = 100000 };

static volatile unsigned word;
static volatile unsigned sum;

static uint64_t run(void) {
  unsigned of_all = 0;
  for (unsigned round = 0; round < FLUSHES; round++) {
    of_all += word;
    __builtin_ia32_clflush((const void *)&word);
  }
  sum = of_all;
  return FLUSHES * 2;
}
