// SPDX-License-Identifier: Apache-2.0
//
// The memory in which a program keeps its persistent data: the heap, or a file mapped MAP_SHARED,
// which outlives the program so that a later run can go on from it. A pool begins with a header
// whose magic number is written and persisted last: a pool without it was never finished and is
// formatted again.
#ifndef POOL_H
#define POOL_H

#include <fcntl.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"
#include "persist.h"

enum { POOL_PARAMETERS = 7 };

// The parameters are those that decide the layout; a pool made with others is refused.
struct pool_header {
  alignas(LINE_BYTES) uint64_t magic;
  uint64_t parameters[POOL_PARAMETERS];
};

__attribute__((noreturn)) static inline void pool_failure(const char *what, const char *path) {
  fprintf(stderr, "%s: ", path);
  perror(what);
  exit(EXIT_USAGE);
}

__attribute__((noreturn)) static inline void pool_mismatch(const char *path, const char *why) {
  fprintf(stderr, "%s: %s\n", path, why);
  exit(EXIT_USAGE);
}

static inline void *pool_map(const char *path, size_t bytes, bool is_scratch) {
  int file = open(path, (is_scratch ? O_RDONLY : O_RDWR | O_CREAT) | O_CLOEXEC, 0666);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0)
    pool_failure("cannot open the pool", path);
  if (!S_ISREG(status.st_mode))
    pool_mismatch(path, "not a regular file");
  // The blocks are reserved now: a full disk is an error here and would be SIGBUS later.
  bool is_new = status.st_size == 0 && !is_scratch;
  if (is_new && (errno = posix_fallocate(file, 0, (off_t)bytes)) != 0)
    pool_failure("cannot size the pool", path);
  if (!is_new && (size_t)status.st_size != bytes)
    pool_mismatch(path, "not a pool made with these options (its size differs)");
  int sharing = is_scratch ? MAP_PRIVATE : MAP_SHARED;
  void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing, file, 0);
  if (base == MAP_FAILED)
    pool_failure("cannot map the pool", path);
  close(file);
  return base;
}

// Opens the file `path` as a pool of `bytes`, or takes zeroed heap memory if it is NULL. The memory
// starts at a cache line and is given back when the program ends. With `is_scratch` the file must
// exist and what is written never reaches it: a pool can be examined without being changed.
static inline void *pool_open(const char *path, size_t bytes, bool is_scratch) {
  bytes = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
  if (path != NULL)
    return pool_map(path, bytes, is_scratch);
  void *base = aligned_alloc(LINE_BYTES, bytes);
  if (base == NULL) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    exit(EXIT_FAILURE);
  }
  return memset(base, 0, bytes);
}

// Whether the pool has been formatted before. Refuses one of another program or other parameters.
static inline bool pool_is_formatted(const struct pool_header *header, const char *path,
                                     uint64_t magic, const uint64_t parameters[POOL_PARAMETERS]) {
  if (header->magic == 0)
    return false;
  if (header->magic != magic)
    pool_mismatch(path, "not a pool of this program");
  if (memcmp(header->parameters, parameters, sizeof header->parameters) != 0)
    pool_mismatch(path, "a pool made with other options");
  return true;
}

// Marks the pool as formatted. Its contents must be durable by then.
static inline void pool_finish_format(struct pool_header *header, uint64_t magic,
                                      const uint64_t parameters[POOL_PARAMETERS],
                                      enum flush flush) {
  memcpy(header->parameters, parameters, sizeof header->parameters);
  persist(flush, header, sizeof *header);
  header->magic = magic;
  persist(flush, header, sizeof *header);
}

#endif
