/* A pool that is mapped in uncommon ways: `mapped POOL HOW` writes a record, `mapped POOL HOW
 * check` reads it. Behind a dot, HOW names a mistake. */
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, FAR = 8 * PAGE, NEVER_MAPPED = 4 * PAGE };

static int file;

static void *map(size_t at, size_t bytes) {
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)at);
}

static void persist(void *at) {
  _mm_clflush(at);
  _mm_sfence();
}

static __attribute__((noinline)) void put(uint64_t *data, uint64_t *valid, const char *how) {
  *data = 7; /* data */
  if (strstr(how, "async"))
    msync((char *)data - (uintptr_t)data % PAGE, PAGE, MS_ASYNC);
  else if (strstr(how, "synced"))
    msync((char *)data - (uintptr_t)data % PAGE, PAGE, MS_SYNC);
  else if (!strstr(how, "mistake"))
    persist(data);
  __asm__ volatile("" ::: "memory");
  *valid = 1; /* valid */
  persist(valid);
}

static int check(void) {
  uint64_t valid = 0, data = 0, never_mapped = 0;
  if (pread(file, &valid, 8, 8) != 8 || pread(file, &never_mapped, 8, NEVER_MAPPED) != 8 ||
      never_mapped != 5)
    return puts("no pool"), 2;
  pread(file, &data, 8, FAR);
  return valid == 0 || data == 7 ? 0 : (puts("valid without data"), 1);
}

int main(int count, char **arguments) {
  const char *how = arguments[2];
  file = open(arguments[1], O_RDWR | O_CREAT, 0644);
  if (count > 3)
    return check();
  uint64_t never_mapped = 5;
  if (pwrite(file, &never_mapped, 8, NEVER_MAPPED) != 8)
    return 3;
  uint64_t *head = map(0, PAGE);
  if (strncmp(how, "grown", 5) == 0 && ftruncate(file, FAR + PAGE) != 0)
    return 3;
  /* Parts that end far behind the file. */
  char *far = map(FAR, 64 * PAGE);
  if (strncmp(how, "grown", 5) != 0 && ftruncate(file, FAR + PAGE / 2) != 0)
    return 3;
  put((uint64_t *)far, head + 1, how);
  return 0;
}
