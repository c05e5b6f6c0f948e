/* counting FILE THREADS: each thread counts in a word of its own of the file, until it is killed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS_APART 8

static volatile uint64_t *counts;

static void *count(void *number) {
  volatile uint64_t *own = counts + WORDS_APART * (uintptr_t)number;
  for (;;)
    ++*own;
  return NULL;
}

int main(int argc, char **argv) {
  int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0666);
  pthread_t thread;
  if (argc != 3 || ftruncate(file, 4096) != 0)
    return 1;
  counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  for (uintptr_t number = 1; number < (uintptr_t)atoi(argv[2]); number++)
    pthread_create(&thread, NULL, count, (void *)number);
  puts("counts");
  fflush(stdout);
  count(NULL);
}
