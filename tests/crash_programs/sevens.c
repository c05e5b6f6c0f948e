// Nothing is flushed, and of the lines that are durable, as the bits of a number, the check wants a
// multiple of 7: one store more may pass or fail, so no lost store explains why an image fails.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static struct pool {
  struct {
    _Alignas(64) volatile uint64_t value;
  } bits[6];
} *pool;

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644), number = 0;
  if (ftruncate(file, 4096))
    return 2;
  pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  for (int bit = 0; count > 2 && bit < 6; bit++)
    number |= (int)pool->bits[bit].value << bit;
  if (count > 2)
    return number % 7 && printf("%d is no multiple of 7\n", number);
  pool->bits[0].value = 1;
  pool->bits[1].value = 1;
  pool->bits[2].value = 1;
  pool->bits[3].value = 1;
  pool->bits[4].value = 1;
  pool->bits[5].value = 1;
  return 0;
}
