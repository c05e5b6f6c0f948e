/* SPDX-License-Identifier: Apache-2.0 */
/* Walks at random, so that its record is large. */
#include <stdint.h>
#include <stdio.h>

static uint64_t words[1 << 16];

int main(void) {
  uint64_t at = 1, sum = 0;
  for (int i = 0; i < 3000000; i++) {
    at = at * 6364136223846793005u + 1442695040888963407u;
    sum += words[at >> 48]++;
  }
  puts(sum != 0 ? "walked" : "");
  return 0;
}
