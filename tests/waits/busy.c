// SPDX-License-Identifier: Apache-2.0
//
// Keeps a processor busy until it is killed or its parent ends.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A parent that has ended before sends no signal.
  for (volatile unsigned long rounds = 0; getppid() != 1; rounds = 0)
    while (rounds < 100000000)
      rounds++;
  return 0;
}
