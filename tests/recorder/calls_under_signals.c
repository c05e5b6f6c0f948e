/* SPDX-License-Identifier: Apache-2.0 */
/* Makes system calls that no signal ends, while a timer's signals come whose handler does not ask
 * for calls to be made again. Prints how many failed. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNALS 10000
#define CHILDREN 20

static volatile sig_atomic_t come;

static void take(int signal) {
  (void)signal;
  come++;
}

int main(void) {
  int failed = 0;
  sigaction(SIGALRM, &(struct sigaction){.sa_handler = take}, NULL);
  struct timeval interval = {.tv_usec = 200};
  setitimer(ITIMER_REAL, &(struct itimerval){interval, interval}, NULL);
  while (come < SIGNALS) {
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    failed += page == MAP_FAILED || mprotect(page, 4096, PROT_NONE) != 0 || munmap(page, 4096) != 0;
  }
  for (int i = 0; i < CHILDREN; i++) {
    pid_t child = fork();
    if (child == 0)
      _exit(0);
    failed += child < 0;
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
      ;
  }
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  printf("%d\n", failed);
  return 0;
}
