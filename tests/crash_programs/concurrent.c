// Two threads that put values into logs of their own, and say so.
//   concurrent POOL HOW                  HOW: c flushes, n stores around the caches, x does neither
//   concurrent POOL HOW DONE DURING      what ended is there, and nothing that has not begun
#include <emmintrin.h>
#include <fcntl.h>
#include <fencepost.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 2, PUTS = 8, BYTES = 16384 };

struct log {
  struct {
    uint64_t word __attribute__((aligned(64)));
  } count, values[PUTS];
};

static struct log *logs;
static char how;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void store(uint64_t *at, uint64_t value) {
  if (how == 'n') {
    _mm_stream_si64((long long *)at, (long long)value);
    _mm_sfence();
    return;
  }
  *(volatile uint64_t *)at = value;
  if (how == 'c') {
    _mm_clflush(at);
    _mm_sfence();
  }
}

static void *work(void *argument) {
  int thread = (int)(intptr_t)argument;
  for (int number = 0; number < PUTS; number++) {
    char text[32];
    snprintf(text, sizeof(text), "put %d %d", thread, number);
    if (number % 3 == 2)
      pthread_mutex_lock(&lock);
    FP_BEGIN(text);
    store(&logs[thread].values[number].word, number + 7);
    store(&logs[thread].count.word, number + 1);
    FP_END();
    if (number % 3 == 2)
      pthread_mutex_unlock(&lock);
  }
  return NULL;
}

/* The last put of each thread among these. */
static void read_puts(char *text, int *last) {
  int thread, number;
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    if (sscanf(line, "put %d %d", &thread, &number) == 2)
      last[thread] = number + 1;
  }
}

static int check(char *done, char *during) {
  int least[THREADS] = {0}, most[THREADS] = {0};
  read_puts(done, least);
  memcpy(most, least, sizeof(most));
  read_puts(during, most);
  for (int thread = 0; thread < THREADS; thread++) {
    int count = (int)logs[thread].count.word;
    if (count < least[thread] || count > most[thread])
      return printf("%d puts, not %d to %d\n", count, least[thread], most[thread]), 1;
    for (int number = 0; number < count; number++) {
      if (logs[thread].values[number].word != (uint64_t)number + 7)
        return puts("a value is missing"), 1;
    }
  }
  return 0;
}

int main(int argc, char **argv) {
  how = argv[2][0];
  int file = open(argv[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, BYTES) != 0)
    return 2;
  logs = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (argc > 3)
    return check(argv[3], argv[4]);
  pthread_t threads[THREADS];
  for (intptr_t thread = 0; thread < THREADS; thread++)
    pthread_create(&threads[thread], NULL, work, (void *)thread);
  for (int thread = 0; thread < THREADS; thread++)
    pthread_join(threads[thread], NULL);
  return 0;
}
