/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the process while threads store to a file, which then says how far they came. Prints where
 * in memory that begins. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define STORERS 3
#define WORDS (1u << 20) /* of each, of which few are reached */
#define BYTES (STORERS * WORDS * sizeof(uint64_t))

static uint64_t *words;
static volatile int running;

/* Four stores in a block, with time between them. */
static void *store(void *argument) {
  uint64_t *at = words + (uintptr_t)argument * WORDS, *end = at + WORDS - 4;
  __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
  for (; at < end; at += 4)
    __asm__ volatile("fldz\n\t"
                     "movq $1, (%0)\n\t.rept 25\n\tfsin\n\t.endr\n\t"
                     "movq $1, 8(%0)\n\t.rept 25\n\tfsin\n\t.endr\n\t"
                     "movq $1, 16(%0)\n\t.rept 25\n\tfsin\n\t.endr\n\t"
                     "movq $1, 24(%0)\n\t.rept 25\n\tfsin\n\t.endr\n\t"
                     "fstp %%st(0)" ::"r"(at)
                     : "st", "memory");
  return NULL;
}

int main(int count, char **arguments) {
  int file = count == 2 ? open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
  if (file < 0 || ftruncate(file, BYTES) != 0)
    return 1;
  words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (words == MAP_FAILED)
    return 1;
  printf("%ju\n", (uintmax_t)(uintptr_t)words);
  for (uintptr_t i = 0; i < STORERS; i++) {
    pthread_t storer;
    pthread_create(&storer, NULL, store, (void *)i);
  }
  while (running < STORERS)
    usleep(1000);
  usleep(10000);
  exit(0);
}
