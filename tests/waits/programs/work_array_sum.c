// SPDX-License-Identifier: Apache-2.0
//
// The same few words are summed over and over: no store, and all addresses repeat.
#include "working.h"

enum { WORDS = 16 };

static volatile unsigned words[WORDS] = {1, 2, 3};
static volatile unsigned sum;

static uint64_t run(void) {
  unsigned of_all = 0;
  for (unsigned round = 0; round < MILLION / WORDS; round++)
    for (unsigned i = 0; i < WORDS; i++)
      of_all = of_all * 3 + words[i];
  sum = of_all;
  return MILLION;
}
