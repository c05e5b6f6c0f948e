// Fields that have to be equal are changed one after the other, each of them durable before the
// next.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static struct pool {
  struct {
    _Alignas(64) volatile uint64_t value;
  } fields[6];
} *pool;

static inline void persist(volatile void *line) {
  __asm__ volatile("clwb (%0)\n\tsfence" ::"r"(line) : "memory");
}

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, 4096))
    return 2;
  pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  for (int field = 1; count > 2 && field < 6; field++)
    if (pool->fields[field].value != pool->fields[0].value)
      return printf("field %d differs\n", field) > 0;
  for (uint64_t n = 1; count == 2 && n <= 3; n++) {
    pool->fields[0].value = n; /* first */
    persist(&pool->fields[0]);
    pool->fields[1].value = n; /* second */
    persist(&pool->fields[1]);
    pool->fields[2].value = n;
    persist(&pool->fields[2]);
    pool->fields[3].value = n;
    persist(&pool->fields[3]);
    pool->fields[4].value = n;
    persist(&pool->fields[4]);
    pool->fields[5].value = n;
    persist(&pool->fields[5]);
  }
  return 0;
}
