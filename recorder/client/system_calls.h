/* SPDX-License-Identifier: Apache-2.0 */
/* System calls: each becomes an event; those that create threads, wait for futexes, change mappings
 * or replace the image become the events for that, too. */
#ifndef SYSTEM_CALLS_H
#define SYSTEM_CALLS_H

void system_calls_init(void);
void system_calls_exit(void);

#endif
