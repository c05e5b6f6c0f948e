/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a file far longer than what is in it, and syncs it under the name that it has by then. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (1ll << 38)

int main(int count, char **arguments) {
  if (count != 3)
    return 2;
  int file = open(arguments[1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, BYTES) != 0 || pwrite(file, "middle", 6, BYTES / 2 + 100) != 6)
    return 3;
  char *start = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (start == MAP_FAILED || start[BYTES / 2 + 100] != 'm')
    return 4;
  start[1] = 'x';
  if (rename(arguments[1], arguments[2]) != 0 || munmap(start + 8192, BYTES - 8192) != 0)
    return 5;
  printf("%llu\n", (unsigned long long)start);
  return fsync(file);
}
