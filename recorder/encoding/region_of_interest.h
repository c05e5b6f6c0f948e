/* SPDX-License-Identifier: Apache-2.0 */
/* The region that --roi asks for: between the entries of two functions, or between two counts of
 * instructions. Where it begins and ends, a thread's record says so. */
#ifndef REGION_OF_INTEREST_H
#define REGION_OF_INTEREST_H

#include "thread.h"

#include <stdbool.h>
#include <stdint.h>

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

/* The thread is there. */
void region_of_interest_begin(struct thread *thread);
void region_of_interest_end(struct thread *thread);

/* The next boundary as a count of the process's encoded instructions, or UINT64_MAX. Exact where
 * one thread runs; of several, each counts what the others have encoded by then. */
uint64_t region_of_interest_boundary(void);
/* That boundary is passed: 1 where the region begins there, 2 where it ends, 0 where another thread
 * was faster. */
uint8_t region_of_interest_pass(uint64_t boundary);

#endif
