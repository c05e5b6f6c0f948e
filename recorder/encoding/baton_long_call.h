/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes a system call that takes long loses the baton, or its process the turn. */
#ifndef BATON_LONG_CALL_H
#define BATON_LONG_CALL_H

#include <stdbool.h>

/* So long a call may take before others go on. */
#define LONG_CALL_MS 100
#define LONG_CALL_NS (LONG_CALL_MS * 1000000ull)

/* By a thread without the baton, once and again: takes it from who has been seen in one call for
 * long, or, where the thread itself waits, for very long. */
void baton_take_from_long_call(bool waits);

#endif
