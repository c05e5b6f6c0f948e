/* SPDX-License-Identifier: Apache-2.0 */
/* The region that --roi asks for: between the entries of two functions, or between two counts of
 * instructions. Where it begins and ends, a thread's record says so.
 *
 * It is recorded alone, unless all is to be warm: outside of it threads still take turns, and
 * nothing of them is kept but how many instructions they execute. Where it begins, the record gets
 * a head: what is mapped, and of each thread where its stack is, which locks it holds, and for what
 * it waits. */
#ifndef REGION_OF_INTEREST_H
#define REGION_OF_INTEREST_H

#include "thread.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether nothing is recorded now, but may be later. */
extern bool region_is_outside;

void region_of_interest_init(void);
/* In a forked child: it counts its own instructions, and begins in the functions' region where its
 * parent was inside. */
void region_of_interest_continue_in_child(struct thread *thread);
/* Whether it is functions that begin and end it. */
bool region_of_interest_has_functions(void);

/* Whether it begins, or ends, where this function is entered. Where both are the same function, it
 * begins at its entry and ends at its return. */
bool region_of_interest_begins_at(const char *function);
bool region_of_interest_ends_at(const char *function);

/* Whether both are. */
bool region_of_interest_is_of_call(void);

/* The thread is there; whether the region begins. Where `region_is_outside` changes by it, the code
 * has to be made anew. */
bool region_of_interest_begin(struct thread *thread);
void region_of_interest_end(struct thread *thread);
/* Likewise, where the thread looks (baton.h): between counts. */
void region_of_interest_look(struct thread *thread);

/* After how many instructions of the thread it has to look for that; UINT64_MAX: never. */
uint64_t region_of_interest_look_in(void);

/* A thread has executed so many instructions outside. */
void region_of_interest_count(uint64_t instructions);

/* The clock of what came before the record's head is none of the record's. */
uint64_t region_of_interest_clock(uint64_t clock);

/* The next boundary as a count of the process's instructions, or UINT64_MAX. Exact where one thread
 * runs; of several, each counts what the others have encoded by then. */
uint64_t region_of_interest_boundary(void);
/* That boundary is passed: 1 where the region begins there, 2 where it ends, 0 where another thread
 * was faster. */
uint8_t region_of_interest_pass(uint64_t boundary);

#endif
