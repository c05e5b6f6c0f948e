// A log of values in persistent memory, whose program says what its operations are.
//   operations POOL VARIANT                              creates the pool, and puts some values
//   operations POOL VARIANT check [DONE DURING]          what ended is there, and of what is in
//                                                        flight no more than that
//   operations POOL VARIANT dump                         all values
#include <fcntl.h>
#include <fencepost.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE __attribute__((aligned(64)))
#define PUTS 3

struct pool {
  LINE uint64_t is_created;
  LINE uint64_t first;
  LINE uint64_t count;
  struct {
    LINE uint64_t value;
  } slots[PUTS];
};

static struct pool *pool;
static const char *variant;

static int is(const char *name) { return strcmp(variant, name) == 0; }

static void persist(const void *line) {
  __builtin_ia32_clflush(line);
  __builtin_ia32_sfence();
}

static void create(void) {
  if (is("creation")) {
    pool->is_created = 1;
    persist(&pool->is_created);
  }
  pool->first = 7;
  persist(&pool->first);
  pool->is_created = 1;
  persist(&pool->is_created);
}

static void put(int number) {
  char text[32];
  snprintf(text, sizeof(text), "put k=%d", number);
  FP_BEGIN(text);
  if (is("late"))
    persist(&pool->count);
  pool->slots[number].value = 100 + number; /* value */
  if (!is("unflushed"))
    persist(&pool->slots[number]);
  pool->count = number + 1; /* count */
  if (!is("late"))
    persist(&pool->count);
  FP_END();
  snprintf(text, sizeof(text), "has %d", number);
  FP_ACK(text);
}

static void *put_beside(void *number) {
  put(*(int *)number);
  return NULL;
}

/* An operation that takes place while one of another thread is in flight. */
static void overlap(int number) {
  pthread_t beside;
  FP_BEGIN("outer");
  pthread_create(&beside, NULL, put_beside, &number);
  pthread_join(beside, NULL);
  FP_END();
}

static int lines_in(const char *text) {
  int lines = *text != '\0';
  for (; *text != '\0'; text++)
    lines += *text == '\n';
  return lines;
}

static int check(const char *done, const char *during) {
  if (pool->is_created && pool->first != 7)
    return puts("half created"), 1;
  for (uint64_t at = 0; at < pool->count; at++) {
    if (pool->slots[at].value != 100 + at)
      return puts("a value is missing"), 1;
  }
  uint64_t ended = lines_in(done), begun = ended + lines_in(during);
  if (pool->count < ended || pool->count > begun)
    return printf("%d puts, and not %d to %d\n", (int)pool->count, (int)ended, (int)begun), 1;
  return 0;
}

int main(int argc, char **argv) {
  variant = argv[2];
  int file = open(argv[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, sizeof(struct pool)) != 0)
    return 2;
  pool = mmap(NULL, sizeof(struct pool), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pool == MAP_FAILED)
    return 2;
  if (argc == 3) {
    create();
    if (is("always_overlap")) {
      overlap(0);
      return 0;
    }
    for (int number = 0; number < PUTS; number++)
      if (is("overlap") && number == 1)
        overlap(number);
      else
        put(number);
  } else if (strcmp(argv[3], "dump") == 0) {
    for (uint64_t at = 0; at < pool->count; at++)
      printf("%d: %d\n", (int)at, (int)pool->slots[at].value);
  } else if (argc == 6) {
    return check(argv[4], argv[5]);
  } else {
    return check("", "\n\n");
  }
  return 0;
}
