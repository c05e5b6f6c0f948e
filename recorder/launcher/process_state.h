/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESS_STATE_H
#define PROCESS_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the process is running, and is not a later one with its id: it started then, in clock
 * ticks since the machine's start (0: whenever). One that has ended and that nobody has waited for
 * yet is not. */
bool process_is_running(int process, uint64_t start_time);

/* Of one that has ended and that nobody has waited for yet: its wait status. False of any other. */
bool process_status_unwaited(int process, int *status);

#endif
