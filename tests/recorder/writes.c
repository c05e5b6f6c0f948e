/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to a mapped file by every kind of store and by system calls, and prints where it was
 * mapped: "pool ADDRESS BYTES". The file's content at the end is what a record must rebuild. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define POOL_BYTES (1u << 20)

static unsigned char *pool, *next;

/* A fresh piece, so that no write hides another one. */
static void *piece(size_t bytes) {
  unsigned char *at = next;
  next += (bytes + 63) / 64 * 64 + 64;
  return at;
}

#include <write_instructions.h> /* of the machine that it is compiled for */

static void system_calls(int descriptor) {
  char *p = piece(8192);
  int zero = open("/proc/self/exe", O_RDONLY), ends[2];
  struct iovec vectors[2] = {{p + 100, 50}, {p + 200, 5000}};
  struct stat *status = piece(sizeof(*status));
  if (read(zero, p, 70) != 70 || pread(zero, p + 5500, 33, 1000) != 33 ||
      readv(zero, vectors, 2) != 5050 || getrandom(p + 6000, 1000, 0) != 1000)
    exit(3);
  fstat(descriptor, status);
  status->st_mtime = status->st_atime = status->st_ctime = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || write(ends[0], "a message", 9) != 9)
    exit(3);
  struct iovec into = {p + 7100, 100};
  struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1};
  if (recvmsg(ends[1], &message, 0) != 9 || pipe((int *)(void *)(p + 7300)) != 0)
    exit(3);
  /* The file itself, written beside the mapping. */
  size_t offset = (size_t)((unsigned char *)piece(8192) - pool);
  if (pwrite(descriptor, "written beside", 14, (off_t)offset) != 14 ||
      lseek(descriptor, (off_t)offset + 4090, SEEK_SET) < 0 ||
      write(descriptor, "over the end of a page", 22) != 22)
    exit(3);
}

static void length_of_file(int descriptor) {
  /* What is cut off comes back as zeros. */
  memset(pool + POOL_BYTES - 8192, 0x99, 8192);
  if (ftruncate(descriptor, POOL_BYTES - 8192 + 100) != 0 ||
      ftruncate(descriptor, POOL_BYTES + 16384) != 0)
    exit(3);
}

static void remapped(int descriptor) {
  /* A second piece of the file, mapped, moved, given back. */
  char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, POOL_BYTES);
  memset(p + 10, 0x31, 5000);
  p = mremap(p, 8192, 16384, MREMAP_MAYMOVE);
  memset(p + 9000, 0x32, 5000);
  printf("second %ju 16384\n", (uintmax_t)(uintptr_t)p);
  munmap(p, 16384);
}

int main(int count, char **arguments) {
  if (count != 2)
    return 2;
  int descriptor = open(arguments[1], O_RDWR);
  pool = next = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (pool == MAP_FAILED)
    return 2;
  printf("pool %ju %u\n", (uintmax_t)(uintptr_t)pool, POOL_BYTES);
  next += 4096; /* what was there stays */
  length_of_file(descriptor);
  write_by_instructions();
  system_calls(descriptor);
  msync(pool, POOL_BYTES, MS_SYNC);
  fsync(descriptor);
  remapped(descriptor);
  return 0;
}
