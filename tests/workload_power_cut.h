// SPDX-License-Identifier: Apache-2.0
//
// A power cut for the example programs, without a simulator. Compiled in ahead of a program, this
// takes the place of the flush and fence instructions: what a flush has seen becomes durable at its
// thread's next fence, and durable means written to an image file beside the pool. When the program
// stops at a crash point, the image holds what memory would hold if no cache line had been written
// back by chance. With POWER_CUT_SEED some lines have been: which of those not yet durable survive
// the seed decides.
//
//   gcc -include workload_power_cut.h ... queue.c
//   POWER_CUT_POOL=pool POWER_CUT_IMAGE=image [POWER_CUT_SEED=1] ./queue --pool pool --crash-at 7
//
// The image must exist and hold what the pool held before the run.
#ifndef WORKLOAD_POWER_CUT_H
#define WORKLOAD_POWER_CUT_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The program's own file for this is left out; its text, but for flush and fence, is kept.
#define flush_range instructions_flush_range
#define fence instructions_fence
#define persist instructions_persist
#include PERSIST_FILE
#undef flush_range
#undef fence
#undef persist

enum { PENDING_MAX = 1 << 16 };

struct pending_line {
  const char *address;
  uint64_t flush; // counts flushes of all threads
  char bytes[LINE_BYTES];
};

static struct {
  pthread_mutex_t lock;
  int image;
  char *base;
  size_t bytes;
  uint64_t flushes;
  uint64_t *durable; // by line: the flush whose bytes it has. Memory never goes back to older ones
} power_cut = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct pending_line *pending;
static _Thread_local size_t pending_count;

static void power_cut_fail(const char *what) {
  fprintf(stderr, "workload_power_cut.h: %s\n", what);
  abort();
}

// Finds where the pool is mapped.
static void power_cut_open(void) {
  char line[4096];
  unsigned long start;
  struct stat status;
  const char *pool = getenv("POWER_CUT_POOL"), *image = getenv("POWER_CUT_IMAGE");
  FILE *maps = fopen("/proc/self/maps", "r");
  if (pool == NULL || image == NULL || maps == NULL)
    power_cut_fail("POWER_CUT_POOL and POWER_CUT_IMAGE must be set");
  while (power_cut.base == NULL && fgets(line, sizeof line, maps) != NULL)
    if (strstr(line, pool) && sscanf(line, "%lx", &start) == 1)
      power_cut.base = (char *)start;
  fclose(maps);
  power_cut.image = open(image, O_RDWR | O_CLOEXEC);
  if (power_cut.base == NULL || power_cut.image < 0 || fstat(power_cut.image, &status) != 0)
    power_cut_fail("no mapped pool or no image");
  power_cut.bytes = (size_t)status.st_size; // the mapping's last page is not all pool
  power_cut.durable = calloc(power_cut.bytes / LINE_BYTES, sizeof *power_cut.durable);
  if (power_cut.durable == NULL)
    power_cut_fail("no memory");
}

static void make_durable(const char *address, const char *bytes) {
  if (pwrite(power_cut.image, bytes, LINE_BYTES, address - power_cut.base) != LINE_BYTES)
    power_cut_fail("cannot write the image");
}

// Other threads may still be storing: a line is read until it stands still, so that it is not torn.
static void read_line(char bytes[LINE_BYTES], const char *address) {
  char again[LINE_BYTES];
  do {
    memcpy(bytes, address, LINE_BYTES);
    __asm__ volatile("" ::: "memory");
    memcpy(again, address, LINE_BYTES);
  } while (memcmp(bytes, again, LINE_BYTES) != 0);
}

static void flush_line(const char *line) {
  struct pending_line *flushed = &pending[pending_count++];
  if (pending_count > PENDING_MAX)
    power_cut_fail("too many lines flushed before a fence");
  flushed->address = line;
  flushed->flush = ++power_cut.flushes;
  read_line(flushed->bytes, line);
}

static void flush_range(enum flush flush, const void *start, size_t bytes) {
  const char *line = (const char *)((uintptr_t)start & ~(uintptr_t)(LINE_BYTES - 1));
  if (flush == FLUSH_NONE)
    return;
  if (pending == NULL && (pending = malloc(PENDING_MAX * sizeof *pending)) == NULL)
    power_cut_fail("no memory");
  pthread_mutex_lock(&power_cut.lock);
  for (; line < (const char *)start + bytes; line += LINE_BYTES)
    flush_line(line);
  pthread_mutex_unlock(&power_cut.lock);
}

static void fence(enum flush flush) {
  if (flush == FLUSH_NONE)
    return;
  pthread_mutex_lock(&power_cut.lock);
  if (power_cut.base == NULL)
    power_cut_open();
  for (size_t i = 0; i < pending_count; i++) {
    uint64_t *durable = &power_cut.durable[(pending[i].address - power_cut.base) / LINE_BYTES];
    if (pending[i].flush > *durable) {
      make_durable(pending[i].address, pending[i].bytes);
      *durable = pending[i].flush;
    }
  }
  pending_count = 0;
  pthread_mutex_unlock(&power_cut.lock);
}

static inline void persist(enum flush flush, const void *start, size_t bytes) {
  flush_range(flush, start, bytes);
  fence(flush);
}

// Ends the program at a crash point. The lock is kept, so no other thread's fence completes any
// more.
static void power_cut_exit(int status) {
  const char *seed = getenv("POWER_CUT_SEED");
  pthread_mutex_lock(&power_cut.lock);
  if (power_cut.base == NULL)
    power_cut_open();
  if (seed != NULL) {
    srandom((unsigned)atoi(seed));
    for (size_t offset = 0; offset < power_cut.bytes; offset += LINE_BYTES)
      if (random() % 2 == 0) {
        char bytes[LINE_BYTES];
        read_line(bytes, power_cut.base + offset);
        make_durable(power_cut.base + offset, bytes);
      }
  }
  _exit(status);
}
#define _exit power_cut_exit

#endif
