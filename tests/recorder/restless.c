/* SPDX-License-Identifier: Apache-2.0 */
/* Threads wait for each other in every way while others fork, exec, are cancelled and take signals.
 * Prints what has been done when all has: restless [ROUNDS] */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int rounds = 10;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int counted, is_over, ends[2];
static volatile sig_atomic_t handled;

static void handle(int number) {
  (void)number;
  handled++;
}

/* Two that wait for each other by a condition. */
static void *count_in_turns(void *argument) {
  int own = argument != NULL;
  for (int i = 0; i < rounds * 10; i++) {
    pthread_mutex_lock(&lock);
    while (counted % 2 != own)
      pthread_cond_wait(&changed, &lock);
    counted++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

/* One that spins until the end. */
static void *spin(void *argument) {
  while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
    __builtin_ia32_pause();
  return argument;
}

static void *read_all(void *argument) {
  char byte;
  struct pollfd one = {.fd = ends[0], .events = POLLIN};
  int bytes = 0;
  while (bytes < rounds) {
    int found = poll(&one, 1, 1000);
    if (found > 0 && read(ends[0], &byte, 1) == 1)
      bytes++;
    else if (found < 0 && errno != EINTR)
      exit(4);
  }
  return argument;
}

static void *wait_to_be_cancelled(void *argument) {
  for (;;)
    sleep(1000);
  return argument;
}

static void run_children(int round) {
  pid_t child = fork();
  int status;
  if (child == 0) {
    if (round % 2 == 0)
      _exit(3);
    execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
    _exit(1);
  }
  if (child < 0)
    exit(5);
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      exit(6);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
    exit(7);
}

int main(int count, char **arguments) {
  pthread_t thread[4], cancelled;
  char *const nothing[] = {NULL};
  if (count > 1)
    rounds = atoi(arguments[1]);
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle}, NULL);
  sigaction(SIGALRM, &(struct sigaction){.sa_handler = handle, .sa_flags = SA_RESTART}, NULL);
  if (pipe(ends) != 0)
    return 2;
  struct itimerval timer = {{0, 3000}, {0, 3000}};
  setitimer(ITIMER_REAL, &timer, NULL);
  pthread_create(&thread[0], NULL, count_in_turns, NULL);
  pthread_create(&thread[1], NULL, count_in_turns, &counted);
  pthread_create(&thread[2], NULL, spin, NULL);
  pthread_create(&thread[3], NULL, read_all, NULL);
  for (int round = 0; round < rounds; round++) {
    pthread_create(&cancelled, NULL, wait_to_be_cancelled, NULL);
    run_children(round);
    execve("/nowhere", nothing, nothing);
    pthread_kill(cancelled, SIGUSR1);
    pthread_cancel(cancelled);
    pthread_join(cancelled, NULL);
    while (write(ends[1], "x", 1) != 1)
      ;
    usleep(100);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < 4; i++)
    pthread_join(thread[i], NULL);
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  printf("counted %d\n", counted);
  return 0;
}
