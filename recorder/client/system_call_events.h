/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's two events for each system call. */
#ifndef SYSTEM_CALL_EVENTS_H
#define SYSTEM_CALL_EVENTS_H

void system_call_events_init(void);
void system_call_events_exit(void);

#endif
