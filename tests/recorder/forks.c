/* SPDX-License-Identifier: Apache-2.0 */
/* Makes children in every way while a thread is at work, and says how each ended. */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile int is_done;

static void *work(void *argument) {
  while (!is_done)
    usleep(100);
  return argument;
}

static void say(const char *how, pid_t child) {
  int status;
  waitpid(child, &status, 0);
  printf("%s %d\n", how, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  fflush(stdout);
}

static int compute(void) {
  volatile int sum = 0;
  for (int i = 0; i < 2000000; i++)
    sum += i;
  return sum != 0;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pid_t child = fork();
  if (child == 0)
    exit(compute() + 10);
  say("fork", child);
  child = fork();
  if (child == 0) {
    pthread_t own;
    is_done = 1;
    pthread_create(&own, NULL, work, NULL);
    pthread_join(own, NULL);
    execlp("sh", "sh", "-c", "env | grep -c DYNAMORIO; exit 12", NULL);
    _exit(1);
  }
  say("exec", child);
  child = fork();
  if (child == 0)
    abort();
  say("abort", child);
  child = vfork();
  if (child == 0) {
    execlp("sh", "sh", "-c", "env | grep -c DYNAMORIO; exit 13", NULL);
    _exit(1);
  }
  say("vfork", child);
  char *arguments[] = {"sh", "-c", "exit 14", NULL};
  if (posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) == 0)
    say("spawn", child);
  printf("system %d\n", WEXITSTATUS(system("exit 15")));
  is_done = 1;
  pthread_join(thread, NULL);
  return 5;
}
