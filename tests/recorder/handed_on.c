/* SPDX-License-Identifier: Apache-2.0 */
/* A signal from another process that one thread alone does not block, while the first thread, to
 * which the kernel gives it, waits for that one to end. Prints whether the handler ran there. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled_by;
static sigset_t none;

static void handle(int number) {
  (void)number;
  handled_by = (int)syscall(SYS_gettid);
}

static void *take(void *unused) {
  sigsuspend(&none);
  printf("handed on %d\n", handled_by == (int)syscall(SYS_gettid));
  return unused;
}

int main(void) {
  pthread_t taker;
  sigset_t one;
  pid_t process = getpid();
  sigemptyset(&none);
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, NULL);
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle}, NULL);
  pthread_create(&taker, NULL, take, NULL);
  pid_t child = fork();
  if (child == 0) {
    usleep(300000);
    kill(process, SIGUSR1);
    _exit(0);
  }
  pthread_join(taker, NULL);
  waitpid(child, NULL, 0);
  return 0;
}
