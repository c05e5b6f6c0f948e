/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes came of the recorded one and have no record, for the launcher to say. */
#ifndef UNRECORDED_CHILDREN_H
#define UNRECORDED_CHILDREN_H

#include <stdint.h>

/* The process is not recorded; it runs the program at `path` from now on. */
void unrecorded_child_runs(int32_t process, const char *path);
/* Likewise, and it has nothing of its parent's memory any more. */
void unrecorded_child_executes(int32_t process, const char *path);
/* It has all of its parent's memory. */
void unrecorded_child_shares_memory(int32_t process);
/* The program that begins, recorded or not: its name, and whether it would run as another user or
 * group, which it does not below an engine. */
void program_begins(void);

#endif
