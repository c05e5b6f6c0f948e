/* SPDX-License-Identifier: Apache-2.0 */
/* The program ends while a thread computes, in a loop that a count would end, or a clock, whose
 * limits lie in memory. Built without optimisation: the counts do, too. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t limit = UINT64_MAX;
static volatile int has_begun;

static void *count(void *argument) {
  uint64_t x = 1;
  has_begun = 1;
  for (uint64_t i = 0; i < limit; i++)
    x = x * 3 + i;
  return x == 0 ? argument : NULL;
}

static void *delay(void *argument) {
  has_begun = 1;
  while (__builtin_ia32_rdtsc() < limit)
    ;
  return argument;
}

int main(int count_of_arguments, char **arguments) {
  pthread_t thread;
  (void)arguments;
  pthread_create(&thread, NULL, count_of_arguments > 1 ? delay : count, NULL);
  while (!has_begun)
    usleep(1000);
  usleep(20000);
  _exit(0);
}
