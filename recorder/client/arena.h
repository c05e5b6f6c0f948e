/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given out piece by piece and freed all at once. It comes straight from the kernel,
 * so that neither the program's heap nor the engine's small client heap notices it. */
#ifndef ARENA_H
#define ARENA_H

#include <stddef.h>

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
void pages_init(void);
/* In a forked child: whoever held the lock is gone. */
void pages_after_fork(void);

#endif
