/* Two numbers that an undo log keeps equal: `undone POOL` changes them, `undone POOL HOW` takes
 * back what was half done and looks at them. */
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 4096 };

struct pool {
  uint64_t magic;
  uint64_t is_logged __attribute__((aligned(64)));
  uint64_t log[2];
  uint64_t first __attribute__((aligned(64)));
  uint64_t second __attribute__((aligned(64)));
};

static void persist(const volatile void *at) {
  _mm_clflush((const void *)at);
  _mm_sfence();
}

static void put(volatile uint64_t *at, uint64_t value) {
  *at = value;
  persist(at);
}

static void change(volatile struct pool *pool) {
  put(&pool->magic, 1);
  pool->log[0] = pool->first;
  pool->log[1] = pool->second;
  put(&pool->log[1], pool->second);
  put(&pool->is_logged, 1);
  put(&pool->first, 7);
  put(&pool->second, 7);
  put(&pool->is_logged, 0);
}

static __attribute__((noinline)) void undo(volatile struct pool *pool) {
  put(&pool->second, pool->log[1]);
  put(&pool->first, pool->log[0]);
  put(&pool->is_logged, 0);
}

static __attribute__((noinline)) void undo_too_early(volatile struct pool *pool) {
  put(&pool->second, pool->log[1]);
  pool->first = pool->log[0]; /* taken back */
  pool->is_logged = 0;        /* log cleared */
  persist(&pool->is_logged);
  persist(&pool->first);
}

int main(int count, char **arguments) {
  int file = open(arguments[1], O_RDWR | O_CREAT, 0644);
  if (count == 2 && ftruncate(file, BYTES) != 0)
    return 3;
  volatile struct pool *pool = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (count == 2)
    return change(pool), 0;
  if (pool->is_logged)
    strcmp(arguments[2], "early") == 0 ? undo_too_early(pool) : undo(pool);
  if (pool->first == pool->second)
    return 0;
  printf("%lu and %lu\n", pool->first, pool->second);
  return 1;
}
