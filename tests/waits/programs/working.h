// SPDX-License-Identifier: Apache-2.0
//
// Programs that look like waiting and are not. A program gives `run`, the second thread's work; it
// gives back the instructions that it has at least, however it is compiled, and they are printed.
// The first thread may have something to do in the meantime (OTHER).
#ifndef WORKING_H
#define WORKING_H

#include <stdint.h>

#include "team.h"

enum { MILLION = 1000000 };

static uint64_t run(void);
#ifdef OTHER
static void OTHER(void);
#endif

static uint64_t instructions_min;

static void run_member(unsigned thread, void *problem) {
  (void)problem;
  if (thread == 1)
    instructions_min = run();
#ifdef OTHER
  else
    OTHER();
#endif
}

int main(void) {
  team_run(2, run_member, NULL);
  printf("%ju\n", (uintmax_t)instructions_min);
  return 0;
}

#endif
