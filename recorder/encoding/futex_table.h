/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes of a process whose threads take turns: who waits at which word, in which order. The
 * kernel has none of them. */
#ifndef FUTEX_TABLE_H
#define FUTEX_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Whether a futex is in the table. Where other processes may wait or wake it is in that of their
 * tree, or the kernel's. */
bool futex_table_has(const uint64_t *argument);

/* Makes the system call `futex`. */
int64_t futex_table_call(struct thread *thread, const uint64_t *argument);

/* Gives back the robust locks of a thread that ends. */
void futex_table_abandon_locks(const struct thread *thread);

/* Clears the word of a thread that ends, and wakes who waits there. */
void futex_table_clear(uint64_t word);

#endif
