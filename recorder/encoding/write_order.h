/* SPDX-License-Identifier: Apache-2.0 */
/* Which writes of other threads came before each write and flush of a thread (--values): threads
 * tell each other things through memory alone, and a replay has to keep the order in which they
 * did.
 *
 * A table has the last writer of each line: a write enters itself before it happens, and what it
 * finds there it depends on; a load looks there afterwards, before the next write or flush of its
 * thread, since nothing else of a thread is seen by others. Lines that share a place in the table
 * count as one, which only makes the order stricter: what it says has always happened in this
 * order. */
#ifndef WRITE_ORDER_H
#define WRITE_ORDER_H

#include "code_table.h"

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* The first `writes` writes of a thread: executions of blocks that have a slot that writes. */
struct dependency {
  uint32_t thread;
  uint64_t writes;
};

#define KNOWN_DEPENDENCIES 64u

struct write_order {
  const uint64_t *walked;    /* in the thread's buffer: what stands before it has been looked at */
  uint64_t writes;           /* among that */
  struct dependency *wanted; /* and not sent yet */
  uint32_t wanted_count;
  uint32_t wanted_capacity;
  struct dependency known[KNOWN_DEPENDENCIES]; /* sent, some of them: at `thread` modulo the size */
  uint32_t held_lock;                          /* number of the lock, from 1; 0 for none */
};

/* Whether the order is kept: with --values, from the second thread on. */
extern bool write_order_is_kept;

void write_order_init(struct thread *thread);
void write_order_free(struct thread *thread);
/* In a forked child: its only thread is another one now, and nobody else has written. */
void write_order_continue_in_child(struct thread *thread);

/* Before a system call that makes a thread: from now on the order is kept. What of the program has
 * been instrumented is forgotten. */
void write_order_begin(void);

/* The thread is about to execute such an instruction. `may_hold_lock`: write_order_end is called as
 * soon as it is done. */
void write_order_before(struct thread *thread, uint32_t id, uint32_t instruction,
                        bool may_hold_lock);

/* The write that was announced last has happened, or will not. */
void write_order_end(struct thread *thread);

/* A string instruction that the thread's buffer ends with has written these bytes. */
void write_order_wrote(struct thread *thread, const struct block *block, uint64_t address,
                       uint64_t bytes);

/* Looks at everything in the thread's buffer up to `end`, where a record of it begins. Where
 * threads take turns that is all there is to do: it stops at an execution that depends on what the
 * record does not say yet, which write_order_tell then says. Returns where it stopped. */
const uint64_t *write_order_look(struct thread *thread, const uint64_t *end);
void write_order_tell(struct thread *thread);

/* The buffer's words from `kept` on have moved to its start. */
void write_order_moved(struct thread *thread, const uint64_t *kept);

/* Between two blocks, before an event takes its place in the process clock: whatever it depends on
 * is sent. */
void write_order_send(struct thread *thread);

#endif
