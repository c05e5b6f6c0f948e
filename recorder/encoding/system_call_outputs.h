/* SPDX-License-Identifier: Apache-2.0 */
/* Which memory of the program a system call wrote. */
#ifndef SYSTEM_CALL_OUTPUTS_H
#define SYSTEM_CALL_OUTPUTS_H

#include "thread.h"

/* Calls `visit` for each piece of memory that the call, which returned `result`, wrote. Calls that
 * are not in the table are taken to write none. */
void system_call_outputs_each(const struct system_call *call, int64_t result,
                              void (*visit)(uint64_t start, uint64_t bytes, void *user_data),
                              void *user_data);

#endif
