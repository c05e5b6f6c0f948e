// SPDX-License-Identifier: Apache-2.0
//
// The statements of a litmus test as instructions, and a program that runs one test on a pool:
//   PROGRAM TEST FLUSH POOL
// FLUSH stands for each weakly ordered flush (`clwb x`, `DC CVAP x`). test_litmus_recorded.py
// writes the tests themselves, from the table of published ones.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "persist.h"

enum { THREADS = 2, POOL_BYTES = 4096 };

typedef volatile uint64_t location;
typedef void thread(char *pool, enum flush weak);

struct test {
  const char *id;
  unsigned count;
  thread *threads[THREADS];
};

#define AT(offset) ((location *)(pool + (offset)))

// A guard, and a load whose value is stored: on the path on which the other thread's store is seen.
static inline uint64_t seen(const location *at) {
  uint64_t value = 0;
  while (value == 0)
    value = *at;
  return value;
}

#if defined(__x86_64__)
static inline void full_fence(void) { __asm__ volatile("mfence" ::: "memory"); }

static inline void exchange(location *at, uint64_t value) {
  __asm__ volatile("lock xchg %0, %1" : "+r"(value), "+m"(*at)::"memory");
}
#else
static inline void memory_barrier(void) { __asm__ volatile("dmb ish" ::: "memory"); }
#endif

static const struct test tests[];
static const unsigned number_of_tests;

static pthread_barrier_t together;
static char *shared;
static enum flush weakly_ordered;

static void *run(void *own) {
  pthread_barrier_wait(&together);
  (*(thread *const *)own)(shared, weakly_ordered);
  return NULL;
}

int main(int count, char **values) {
  if (count != 4 || !flush_from_name(values[2], &weakly_ordered))
    return 2;
  shared = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, open(values[3], O_RDWR), 0);
  if (shared == MAP_FAILED)
    return 2;
  for (unsigned offset = 0; offset < POOL_BYTES; offset += LINE_BYTES)
    (void)*(location *)(shared + offset); // else a store waits for its line longer than for a flush
  for (const struct test *test = tests; test < tests + number_of_tests; test++) {
    if (strcmp(test->id, values[1]) != 0)
      continue;
    pthread_t started[THREADS];
    pthread_barrier_init(&together, NULL, test->count);
    for (unsigned i = 1; i < test->count; i++)
      if (pthread_create(&started[i], NULL, run, (void *)&test->threads[i]) != 0)
        return 2;
    run((void *)&test->threads[0]);
    for (unsigned i = 1; i < test->count; i++)
      pthread_join(started[i], NULL);
    return 0;
  }
  return 2;
}
