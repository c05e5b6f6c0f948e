/* SPDX-License-Identifier: Apache-2.0 */
/* Threads store to one line of the heap as fast as they can, so that with --values one is nearly
 * always at its store and the others wait for their turn. Meanwhile the engine stops all of them,
 * again and again, to make code anew (relocations.c). */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define STORERS 3
#define PLACES 40

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_over;
static volatile uint64_t *line;

#define STRING_OF(text) #text
#define STRING(macro) STRING_OF(macro)

#define PLACE_BYTES 32
void places(void *object, void *function);
__asm__(".text\n.balign 32\nplaces:\n"
        ".rept " STRING(PLACES) "\n.balign 32\n\t"
                                "sub $8, %rsp\n\ttest %rsi, %rsi\n\tje 1f\n\tcall *%rsi\n1:\tadd "
                                "$8, %rsp\n\tret\n.endr\n");

static void at_place(int place, void *function) {
  void (*call)(void *, void *) =
      (void (*)(void *, void *))((uintptr_t)places + (uintptr_t)place * PLACE_BYTES);
  call(&mutex, NULL);
  call(&mutex, function);
}

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
    at_place(place, (void *)pthread_mutex_lock);
    at_place(place + 1, (void *)pthread_mutex_unlock);
  }
  is_over = 1;
  for (int i = 0; i < STORERS; i++)
    pthread_join(storer[i], NULL);
  return 0;
}
