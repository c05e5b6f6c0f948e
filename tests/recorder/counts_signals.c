/* SPDX-License-Identifier: Apache-2.0 */
/* Says "working", and when it has got a signal, counts for a while how often one comes: its exit
 * code. With "leave" it leaves its session first, and says so. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WHILE_S 2

static volatile sig_atomic_t count;

static void handle(int number) {
  (void)number;
  count++;
}

int main(int argc, char **argv) {
  const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
  const char *how = argc > 1 ? argv[1] : "";
  for (int i = 0; i < 3; i++)
    sigaction(numbers[i], &(struct sigaction){.sa_handler = handle}, NULL);
  if (strcmp(how, "leave") == 0)
    setsid();
  puts("working");
  fflush(stdout);
  while (count == 0)
    usleep(10000);
  struct timespec left = {.tv_sec = WHILE_S};
  while (nanosleep(&left, &left) != 0)
    continue;
  return count;
}
