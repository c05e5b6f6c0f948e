/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes of a process whose threads take turns: who waits at which word, in which order. The kernel
 * has none of them. */
#ifndef FUTEX_TABLE_H
#define FUTEX_TABLE_H

#include <stdint.h>

struct thread;

/* Makes the system call `futex`. */
int64_t futex_table_call(struct thread *thread, const uint64_t *argument);

/* Clears the word of a thread that ends, and wakes who waits there. */
void futex_table_clear(uint64_t word);

#endif
