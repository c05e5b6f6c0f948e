/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that wait for another thread's store, and loops that look like it but count. Each runs
 * between ROI markers; prints the address that is waited for. */
#include <spin_loops.h> /* of the machine that it is compiled for */

#include <pthread.h>
#include <time.h>

static volatile int is_ready, plain_flag, pausing_flag, counted_flag;

static void *set_flags(void *argument) {
  struct timespec time = {.tv_nsec = 50000000};
  (void)argument;
  while (!is_ready)
    nanosleep(&time, NULL);
  nanosleep(&time, NULL);
  plain_flag = 1;
  nanosleep(&time, NULL);
  pausing_flag = 1;
  return NULL;
}

int main(void) {
  pthread_t other;
  uint64_t product = 1, rounds = 100000, factor = 3;
  pthread_create(&other, NULL, set_flags, NULL);
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
