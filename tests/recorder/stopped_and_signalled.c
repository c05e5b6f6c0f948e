/* SPDX-License-Identifier: Apache-2.0 */
/* A thread waits in the kernel for a signal, again and again, while another one tries to execute a
 * file that is not there, which stops all others each time: most signals meet a thread that is
 * stopped. Ends when each signal has been taken. Prints how many were. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define SIGNALS 3000

static sem_t never, taken, begun;
static atomic_int is_over, count;

static void take(int signal) {
  (void)signal;
  count++;
  sem_post(&taken);
}

static void *wait_in_kernel(void *nothing) {
  sem_post(&begun);
  while (count < SIGNALS)
    sem_wait(&never);
  return nothing;
}

static void *stop_others(void *nothing) {
  while (!is_over)
    execl("/nowhere/at/all", "nothing", (char *)NULL);
  return nothing;
}

int main(void) {
  sem_init(&never, 0, 0);
  sem_init(&taken, 0, 0);
  sem_init(&begun, 0, 0);
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = take, .sa_flags = SA_RESTART}, NULL);
  pthread_t waiter, stopper;
  pthread_create(&waiter, NULL, wait_in_kernel, NULL);
  pthread_create(&stopper, NULL, stop_others, NULL);
  sem_wait(&begun);
  for (int i = 0; i < SIGNALS; i++) {
    pthread_kill(waiter, SIGUSR1);
    while (sem_wait(&taken) != 0)
      continue;
  }
  is_over = 1;
  sem_post(&never);
  pthread_join(waiter, NULL);
  pthread_join(stopper, NULL);
  printf("%d\n", count);
  return 0;
}
