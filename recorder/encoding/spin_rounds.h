/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that reads the same words again and again, and stores nothing, waits: it is seen after a
 * few rounds, and the rest of its turn is only counted. */
#ifndef SPIN_ROUNDS_H
#define SPIN_ROUNDS_H

#include <stdbool.h>

struct thread;

/* Whether what the thread has executed last are such rounds. */
bool spin_rounds_end(const struct thread *thread);

#endif
