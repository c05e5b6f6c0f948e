/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given out piece by piece and freed all at once. It comes straight from the kernel,
 * so that neither the program's heap nor the engine's small heap for clients notices it. */
#ifndef ARENA_H
#define ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena {
  struct arena_chunk *chunks;
};

/* Zeroed memory, aligned to 16 bytes; never NULL (the engine ends the process when there is none).
 */
void *arena_allocate(struct arena *arena, size_t bytes);
void arena_free(struct arena *arena);

/* Whole pages of zeroed memory, only taken from the machine when touched. */
void *pages_allocate(size_t bytes);
void pages_free(void *pages, size_t bytes);
/* Whether they are in use and hold `address`. */
int pages_contain(const void *address);
/* Whether any are in use within the `bytes` from `start` on. */
int pages_overlap(const void *start, size_t bytes);
/* The first in use that reach into [start, end); 0 where there are none. */
int pages_first(uint64_t start, uint64_t end, uint64_t *from, uint64_t *to);
void pages_init(void);
/* In a forked child: whoever held the lock is gone. */
void pages_after_fork(void);

#endif
