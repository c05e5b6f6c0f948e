/* SPDX-License-Identifier: Apache-2.0 */
/* Says "begins", and then has threads begin and end until it is ended itself. */
#include <pthread.h>
#include <stdio.h>

#define THREADS 8

static void *end(void *argument) { return argument; }

int main(void) {
  pthread_t thread[THREADS];
  puts("begins");
  fflush(stdout);
  for (;;) {
    for (int i = 0; i < THREADS; i++)
      pthread_create(&thread[i], NULL, end, NULL);
    for (int i = 0; i < THREADS; i++)
      pthread_join(thread[i], NULL);
  }
}
