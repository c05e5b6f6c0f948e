/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that write their own lines of a mapped file, or of the heap, side by side, more than fits
 * into a buffer: "pool ADDRESS BYTES" on standard output, and with a heap its content in a file. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 4
#define LINES 512
#define LINE 64
#define ROUNDS 8 /* each writes one byte more of a line */

static char *pool;

/* Line by line the threads alternate. */
static void *write_lines(void *argument) {
  uintptr_t thread = (uintptr_t)argument;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < LINES; i++) {
      char *line = pool + ((size_t)i * THREADS + thread) * LINE;
      uint64_t *words = (uint64_t *)(void *)line;
      for (int word = 0; word < 6; word++)
        words[word] = words[word] * 31 + (uint64_t)(i + word + round) + thread;
      __atomic_fetch_add(&words[6], thread + 1, __ATOMIC_SEQ_CST);
      memcpy(line + 56 + round % 8, &round, 1);
    }
  }
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 3)
    return 2;
  size_t bytes = (size_t)THREADS * LINES * LINE;
  int is_heap = strcmp(arguments[1], "heap") == 0;
  int descriptor = open(arguments[2], O_RDWR | O_CREAT, 0600);
  if (is_heap)
    pool = calloc(1, bytes);
  else
    pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  printf("pool %ju %zu\n", (uintmax_t)(uintptr_t)pool, bytes);
  fflush(stdout);
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, write_lines, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  if (is_heap && write(descriptor, pool, bytes) != (ssize_t)bytes)
    return 3;
  return 0;
}
