/* SPDX-License-Identifier: Apache-2.0 */
/* The program's mappings, and how they change: what the simulator needs to know which
 * addresses are heap, stack or file. The engine's own memory is not the program's and left out. */
#ifndef MEMORY_MAP_H
#define MEMORY_MAP_H

#include "thread.h"

/* All mappings that exist; the first events of an image's first thread. */
void memory_map_send_all(struct thread *thread);

/* The program has memory that it may store to and others may see. */
bool memory_map_is_shared(void);

/* The program's break is at `end` now, a page's boundary. */
void memory_map_break_is(struct thread *thread, uint64_t end);

/* What the kernel says of the mapping at `start`, as an event: `length` bytes of it, or all of it
 * where that is 0. What selected memory holds there comes with it. */
void memory_map_send_at(struct thread *thread, uint64_t start, uint64_t length);

/* A new mapping without a file. */
void memory_map_send_anonymous(struct thread *thread, uint64_t start, uint64_t length,
                               uint8_t protection, uint8_t kind);
void memory_map_send_unmap(struct thread *thread, uint64_t clock, uint64_t start, uint64_t length);

/* The mapping that holds a thread's first stack pointer; zeros where there is none. */
void memory_map_stack(uint64_t stack_pointer, uint64_t *low, uint64_t *high);

#endif
