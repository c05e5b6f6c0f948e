/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a region of interest can be asked for by. */
#include <stdint.h>
#include <stdio.h>

volatile uint64_t before[8], inside[8], after[8];

__attribute__((noinline)) void enter_region(void) { inside[0]++; }
__attribute__((noinline)) void leave_region(void) { after[0]++; }
__attribute__((noinline)) static void whole_region(void) { inside[1]++; }

int main(void) {
  printf("inside %ju\n", (uintmax_t)(uintptr_t)inside);
  fflush(stdout);
  for (int round = 0; round < 3; round++) {
    before[0]++;
    enter_region();
    inside[2]++;
    leave_region();
    whole_region();
    after[1]++;
  }
  return 0;
}
