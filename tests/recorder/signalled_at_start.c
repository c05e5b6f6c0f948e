/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread gets a signal as soon as the kernel knows it, in a process that has had a child: many
 * come before the recorder knows the thread. A thread waits for its own. Prints how many came. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 300
#define REMEMBERED 8

static atomic_int is_over, count;
static _Thread_local volatile sig_atomic_t has_come;
/* The threads that got their signals last: one that has been joined may be listed a little longer.
 * Their numbers say nothing of their age, since the kernel's begin anew. */
static int signalled[REMEMBERED];
static atomic_int has_begun;

static void take(int signal) {
  (void)signal;
  has_come = 1;
  count++;
}

static void *wait_for_signal(void *nothing) {
  while (!has_come)
    usleep(100);
  return nothing;
}

static int is_new(int thread) {
  for (int i = 0; i < REMEMBERED; i++)
    if (signalled[i] == thread)
      return 0;
  return 1;
}

/* Sends each thread that is new its signal. */
static void *send_to_new(void *nothing) {
  int first = getpid(), own = gettid();
  unsigned next = 0;
  while (!is_over) {
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
      int thread = atoi(entry->d_name);
      if (thread > 0 && thread != first && thread != own && is_new(thread) &&
          syscall(SYS_tgkill, first, thread, SIGUSR1) == 0)
        signalled[next++ % REMEMBERED] = thread;
    }
    closedir(threads);
    has_begun = 1;
  }
  return nothing;
}

int main(void) {
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = take}, NULL);
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  waitpid(child, NULL, 0);
  pthread_t sender, thread;
  pthread_create(&sender, NULL, send_to_new, NULL);
  while (!has_begun)
    usleep(100);
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&thread, NULL, wait_for_signal, NULL);
    pthread_join(thread, NULL);
  }
  is_over = 1;
  pthread_join(sender, NULL);
  printf("%d\n", count);
  return 0;
}
