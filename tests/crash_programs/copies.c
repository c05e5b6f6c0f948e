// A record is copied into the pool by the C library, and what makes it valid is flushed alone.
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct record {
  _Alignas(64) char name[48];
};
static struct pool {
  struct record records[4];
  _Alignas(64) volatile uint64_t valid;
} *pool;

__attribute__((noinline)) static void add(uint64_t number, const char *name, size_t bytes) {
  memcpy(pool->records[number].name, name, bytes); /* copied */
  pool->valid = number + 1;                        /* valid */
  __asm__ volatile("clwb (%0)\n\tsfence" ::"r"(&pool->valid) : "memory");
}

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, 4096))
    return 2;
  pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  for (uint64_t number = 0; count > 2 && number < pool->valid; number++)
    if (pool->records[number].name[0] == 0)
      return 1;
  if (count > 2)
    return 0;
  for (uint64_t number = 0; number < 2; number++)
    add(number, "a name of a record", 10 + number); /* called in a loop */
  add(2, "the last name", 13);                      /* called behind it */
  return 0;
}
