/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes in memory that the processes of a tree share. They are named by what is mapped there; who
 * waits stands in the tree (format/tree.h). */
#ifndef SHARED_FUTEX_H
#define SHARED_FUTEX_H

#include "kernel_maps.h"

struct thread;

/* Whether the tree has it: not one with priority inheritance, which is the kernel's. */
bool shared_futex_has(const uint64_t *argument);

/* Makes the system call `futex` for a word in the mapping; a wait ends at `until`. */
int64_t shared_futex_call(struct thread *thread, const struct kernel_map *map,
                          const uint64_t *argument, uint64_t until);

#endif
