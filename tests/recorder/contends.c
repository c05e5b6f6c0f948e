/* SPDX-License-Identifier: Apache-2.0 */
/* Threads store to one line of the heap as fast as they can, so that with --values one is nearly
 * always at its store and the others wait for their turn. Meanwhile the engine stops all of them,
 * again and again, to make code anew (new_places.h). */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define STORERS 3
#define PLACES 40
#include "new_places.h"

static volatile int is_over;
static volatile uint64_t *line;

static void *store(void *argument) {
  uintptr_t thread = (uintptr_t)argument;
  for (uint64_t round = 1; !is_over; round++)
    line[thread] = round;
  return NULL;
}

int main(void) {
  pthread_t storer[STORERS];
  line = aligned_alloc(64, 64);
  for (int i = 0; i < STORERS; i++)
    line[i] = 0;
  for (uintptr_t i = 0; i < STORERS; i++)
    pthread_create(&storer[i], NULL, store, (void *)i);
  for (int i = 0; i < STORERS; i++)
    while (line[i] == 0)
      usleep(1000);
  for (int place = 0; place < PLACES; place += 2) {
    at_place(place);
    at_place(place + 1);
  }
  is_over = 1;
  for (int i = 0; i < STORERS; i++)
    pthread_join(storer[i], NULL);
  return 0;
}
