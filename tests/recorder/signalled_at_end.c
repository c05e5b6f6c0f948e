/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread ends while signals of many kinds come to it, in a process that has had a child: some
 * come while the recorder forgets the thread. Prints how many threads there were. */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 1000
/* Not without end: a thread that does nothing but take signals does not end. */
#define TURNS 200

/* One that is held back for the thread hides those behind it that are the same. */
static const int signals[] = {SIGUSR1, SIGUSR2, SIGCHLD, SIGURG,  SIGWINCH, SIGIO,  SIGPWR,
                              SIGCONT, SIGHUP,  SIGTERM, SIGQUIT, SIGINT,   SIGPIPE};
#define SIGNALS (int)(sizeof signals / sizeof *signals)

extern char **environ;

static atomic_int number;
static _Thread_local volatile sig_atomic_t has_come;

static void take(int signal) {
  (void)signal;
  has_come = 1;
}

static void *wait_for_signal(void *nothing) {
  number = (int)syscall(SYS_gettid);
  while (!has_come)
    usleep(100);
  return nothing;
}

int main(void) {
  for (int i = 0; i < SIGNALS; i++)
    sigaction(signals[i], &(struct sigaction){.sa_handler = take}, NULL);
  pid_t child;
  char *arguments[] = {"true", NULL};
  if (posix_spawnp(&child, "true", NULL, NULL, arguments, environ) != 0)
    return 1;
  waitpid(child, NULL, 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_t thread;
    number = 0;
    pthread_create(&thread, NULL, wait_for_signal, NULL);
    while (number == 0)
      usleep(100);
    for (int turn = 0;
         turn < TURNS && syscall(SYS_tgkill, getpid(), number, signals[turn % SIGNALS]) == 0;
         turn++)
      for (volatile int pause = 0; pause < i; pause++)
        ;
    pthread_join(thread, NULL);
  }
  printf("%d\n", THREADS);
  return 0;
}
