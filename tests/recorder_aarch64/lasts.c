/* SPDX-License-Identifier: Apache-2.0 */
/* Three threads that never end: one computes, one waits, one sleeps. Prints its process. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile unsigned long counted;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *compute(void *argument) {
  (void)argument;
  for (;;)
    counted++;
  return NULL;
}

static void *wait(void *argument) {
  pthread_mutex_lock(&mutex);
  return argument;
}

int main(void) {
  pthread_t other;
  pthread_mutex_lock(&mutex);
  pthread_create(&other, NULL, compute, NULL);
  pthread_create(&other, NULL, wait, NULL);
  while (counted == 0)
    usleep(1000);
  printf("%d\n", (int)getpid());
  fflush(stdout);
  for (;;)
    pause();
}
