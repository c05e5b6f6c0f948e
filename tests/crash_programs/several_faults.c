// Several ways to lose data in one program. Each store that matters has a remark of its own; the
// first fault shows at each of many instants, before the others come.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAIRS = 60 };

/* Each member has a line of its own. */
struct pool {
  struct {
    _Alignas(64) uint64_t value;
  } left, right; /* changed together, without a log */
  struct {
    _Alignas(64) uint64_t value;
  } record, linked; /* the record is not flushed */
  struct {
    _Alignas(64) uint64_t value;
  } data, commit; /* no fence between the two */
  struct {
    _Alignas(64) uint64_t value;
  } early, done; /* flushed before it is stored */
};
static volatile struct pool *pool;

static void flush(volatile void *line) { __asm__ volatile("clwb (%0)" ::"r"(line) : "memory"); }
static void fence(void) { __asm__ volatile("sfence" ::: "memory"); }

static int check(void) {
  if (pool->left.value != pool->right.value)
    return puts("the two sides differ"), 1;
  if (pool->linked.value && pool->record.value != pool->linked.value)
    return puts("the record is not there"), 1;
  if (pool->commit.value && pool->data.value != pool->commit.value)
    return puts("committed without its data"), 1;
  if (pool->done.value && pool->early.value != pool->done.value)
    return puts("done before it was"), 1;
  return 0;
}

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, 4096))
    return 2;
  pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (count > 2)
    return check();
  for (uint64_t n = 1; n <= PAIRS; n++) {
    pool->left.value = n; /* left */
    flush(&pool->left);
    fence();
    pool->right.value = n; /* right */
    flush(&pool->right);
    fence();
  }
  for (uint64_t n = 1; n <= 2; n++) {
    pool->record.value = n; /* record */
    fence();
    pool->linked.value = n; /* linked */
    flush(&pool->linked);
    fence();
    pool->data.value = n; /* data */
    flush(&pool->data);
    pool->commit.value = n; /* commit */
    flush(&pool->commit);
    fence();
    flush(&pool->early);
    pool->early.value = n; /* early */
    fence();
    pool->done.value = n; /* done */
    flush(&pool->done);
    fence();
  }
  return 0;
}
