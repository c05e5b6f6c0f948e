/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that wait for another thread's store, and loops that look like it but count. Each runs
 * between ROI markers; prints the address that is waited for. */
#include <spin_loops.h> /* of the machine that it is compiled for */

#include <pthread.h>
#include <time.h>

static volatile int is_ready, plain_flag, pausing_flag, counted_flag;

/* Until the thread with that clock has computed for 50 ms, whatever else the machine does. */
static void let_poll(clockid_t clock) {
  struct timespec nap = {.tv_nsec = 5000000}, start, now;
  clock_gettime(clock, &start);
  do {
    nanosleep(&nap, NULL);
    clock_gettime(clock, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 50000000);
}

static void *set_flags(void *clock) {
  struct timespec nap = {.tv_nsec = 5000000};
  while (!is_ready)
    nanosleep(&nap, NULL);
  let_poll(*(clockid_t *)clock);
  plain_flag = 1;
  let_poll(*(clockid_t *)clock);
  pausing_flag = 1;
  return NULL;
}

int main(void) {
  pthread_t other;
  uint64_t product = 1, rounds = 100000, factor = 3;
  clockid_t clock;
  pthread_getcpuclockid(pthread_self(), &clock);
  pthread_create(&other, NULL, set_flags, &clock);
  printf("plain %ju\npausing %ju\n", (uintmax_t)(uintptr_t)&plain_flag,
         (uintmax_t)(uintptr_t)&pausing_flag);
  fflush(stdout);
  is_ready = 1;
  WAIT_PLAINLY(plain_flag);
  WAIT_PAUSING(pausing_flag);
  COUNT_PAUSING(counted_flag);
  MULTIPLY(product, rounds, factor);
  pthread_join(other, NULL);
  return product == 1;
}
