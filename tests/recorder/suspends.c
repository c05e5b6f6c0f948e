/* SPDX-License-Identifier: Apache-2.0 */
/* Waits with sigsuspend for a signal that came while it was blocked: prints what came of it, and
 * whether the signal is blocked again. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void note(int number) { seen = number; }

int main(void) {
  struct sigaction action = {.sa_handler = note};
  sigset_t all, before, now;
  sigaction(SIGUSR1, &action, NULL);
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  kill(getpid(), SIGUSR1);
  int returned = sigsuspend(&before);
  sigprocmask(SIG_SETMASK, NULL, &now);
  printf("%d %d %d\n", returned, seen == SIGUSR1, sigismember(&now, SIGUSR1));
  return 0;
}
