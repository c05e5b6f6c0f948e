/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that reads the same words again and again, and stores nothing, waits: it need not run
 * until one of them has changed. */
#ifndef SPIN_ROUNDS_H
#define SPIN_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Keeps what the thread, which has the baton, reads in each such round with what it holds; returns
 * how many words that are, 0 where it does more. Where it `pauses`, a round is all that it has
 * executed since it looked last. */
uint32_t spin_rounds_watch(struct thread *thread, bool pauses);

#endif
