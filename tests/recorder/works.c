/* SPDX-License-Identifier: Apache-2.0 */
/* Works until it is ended from outside, and says when it is in the middle of it. With "handle" it
 * ends itself, with code 7, when it is interrupted. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number) {
  (void)number;
  is_interrupted = 1;
}

int main(int count, char **arguments) {
  static volatile uint64_t words[4096];
  if (count > 1 && strcmp(arguments[1], "handle") == 0)
    signal(SIGINT, interrupt);
  for (uint64_t round = 0; !is_interrupted; round++) {
    for (int i = 0; i < 4096; i++)
      words[i] += round;
    if (round == 300) {
      puts("working");
      fflush(stdout);
    } else if (round > 300) {
      usleep(1000);
    }
  }
  return 7;
}
