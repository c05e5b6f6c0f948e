/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are selected persistent memory at this moment (--values): the mappings that the
 * selector means, without stacks. Asked at every write of the program, by all threads. */
#ifndef SELECTED_MEMORY_H
#define SELECTED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether values are recorded at all. Constant once the recorder is initialised. */
extern bool values_are_recorded;

void selected_memory_init(void);
void selected_memory_exit(void);
void selected_memory_after_fork(void);

/* A mapping began, in place of whatever was there. */
void selected_memory_mapped(uint64_t start, uint64_t length, uint8_t kind, const char *name);
/* A mapping ended. */
void selected_memory_unmapped(uint64_t start, uint64_t length);
/* A thread has its stack here. */
void selected_memory_is_stack(uint64_t low, uint64_t high);

/* The first selected piece of [start, end); false where there is none. */
bool selected_memory_find(uint64_t start, uint64_t end, uint64_t *piece_start, uint64_t *piece_end);

/* Whether the mapping of a file of this path would be selected, as a whole or in part. */
bool selected_memory_may_be_file(const char *path);

#endif
