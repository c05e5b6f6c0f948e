// SPDX-License-Identifier: Apache-2.0
//
// The memory of a tenant: one range at an address that does not depend on the run, so that a
// replay can place each tenant's range on a node of its own. It is shared with the processes that
// load and check it, which are forked: what they do is no part of the program that is measured, nor
// of its record.
#ifndef ARENA_H
#define ARENA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARENA_LINE_BYTES = 64 };

#define ARENA_BASE UINT64_C(0x100000000000)
#define ARENA_STRIDE UINT64_C(0x001000000000)

struct arena {
  char *next;
  char *end;
};

// Pages come when they are touched. Arena 0 is that of requests, 1 that of the first tenant.
static inline struct arena arena_map(unsigned number) {
  void *place = (void *)(uintptr_t)(ARENA_BASE + number * ARENA_STRIDE); // NOLINT
  const int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  char *memory = mmap(place, ARENA_STRIDE, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory != place) {
    perror("cannot map the memory of a tenant");
    exit(EXIT_FAILURE);
  }
  return (struct arena){.next = memory, .end = memory + ARENA_STRIDE};
}

// Zeroed memory that begins at a line.
static inline void *arena_take(struct arena *arena, uint64_t bytes) {
  uint64_t whole = (bytes + ARENA_LINE_BYTES - 1) / ARENA_LINE_BYTES * ARENA_LINE_BYTES;
  if (whole > (uint64_t)(arena->end - arena->next)) {
    fputs("a tenant's memory is full\n", stderr);
    exit(EXIT_FAILURE);
  }
  char *taken = arena->next;
  arena->next += whole;
  return taken;
}

// Runs `step` in a process of its own, which sees the arenas; whether it succeeded.
static inline bool arena_apart(bool (*step)(void *), void *argument) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0)
    _exit(step(argument) ? EXIT_SUCCESS : EXIT_FAILURE);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    perror("cannot run a process beside");
    exit(EXIT_FAILURE);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

#endif
