/* SPDX-License-Identifier: Apache-2.0 */
/* Writes memory in a loop, in which a child interrupts it: prints how many signals have come. The
 * child sends the next when the last has been handled, and ends everything if that takes long. */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNALS 100
#define LONG_MS 30000

static volatile sig_atomic_t seen;
static int handled[2];

static void note(int number) {
  (void)number;
  seen++;
  if (write(handled[1], "", 1) != 1)
    _exit(2);
}

static void interrupt(pid_t parent) {
  struct pollfd answer = {.fd = handled[0], .events = POLLIN};
  for (int i = 0; i < SIGNALS; i++) {
    char byte;
    usleep(i * 37 % 1000);
    kill(parent, SIGUSR1);
    if (poll(&answer, 1, LONG_MS) != 1) {
      kill(parent, SIGKILL);
      _exit(1);
    }
    if (read(handled[0], &byte, 1) != 1)
      _exit(2);
  }
  _exit(0);
}

int main(void) {
  struct sigaction action = {.sa_handler = note};
  volatile uint64_t *memory = malloc(4096);
  if (memory == NULL || pipe(handled) != 0)
    return 1;
  sigaction(SIGUSR1, &action, NULL);
  pid_t parent = getpid(), child = fork();
  if (child == 0)
    interrupt(parent);
  for (uint64_t i = 0; seen < SIGNALS; i++)
    memory[i % 512] = i;
  printf("%d\n", (int)seen);
  return waitpid(child, NULL, 0) == child ? 0 : 1;
}
