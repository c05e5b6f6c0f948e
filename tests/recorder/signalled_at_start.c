/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread gets a signal as soon as the kernel knows it, in a process that has had a child: many
 * come before the recorder knows the thread. A thread waits for its own. Prints how many came. */
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

static atomic_int is_over, count;
static _Thread_local volatile sig_atomic_t has_come;
/* The youngest thread that has got its signal: numbers only go up in so short a time. */
static int youngest;

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

/* Sends each thread that is new its signal. */
static void *send_to_new(void *nothing) {
  while (!is_over) {
    DIR *threads = opendir("/proc/self/task");
    int newest = youngest;
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
      int thread = atoi(entry->d_name);
      if (thread > youngest && syscall(SYS_tgkill, getpid(), thread, SIGUSR1) == 0 &&
          thread > newest)
        newest = thread;
    }
    closedir(threads);
    youngest = newest;
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
  while (youngest == 0) {
    /* The sender has sent itself and the first thread one by now. */
    usleep(100);
  }
  int before = count;
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&thread, NULL, wait_for_signal, NULL);
    pthread_join(thread, NULL);
  }
  is_over = 1;
  pthread_join(sender, NULL);
  printf("%d\n", count - before);
  return 0;
}
