// Values in one file, and how many of them count in another.
//   two_files FOLDER VARIANT         puts some values
//   two_files FOLDER VARIANT check   what counts is there
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 8192, PUTS = 3, WORDS_APART = 8 };

static uint64_t *map(const char *folder, const char *name) {
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  int file = open(path, O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, BYTES) != 0)
    return NULL;
  return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void persist(const void *line) {
  __builtin_ia32_clflush(line);
  __builtin_ia32_sfence();
}

int main(int argc, char **argv) {
  uint64_t *count = map(argv[1], "count.pool"), *values = map(argv[1], "values.pool");
  if (argc == 4) {
    for (uint64_t at = 0; at < *count; at++) {
      if (values[at * WORDS_APART] != 100 + at)
        return printf("value %d is missing\n", (int)at), 1;
    }
    return 0;
  }
  for (uint64_t at = 0; at < PUTS; at++) {
    values[at * WORDS_APART] = 100 + at; /* value */
    if (strcmp(argv[2], "unflushed") != 0)
      persist(&values[at * WORDS_APART]);
    *count = at + 1; /* count */
    persist(count);
  }
  return 0;
}
