/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's news of the process as a whole: forks, and the exec of a child that is not recorded.
 */
#ifndef PROCESS_EVENTS_H
#define PROCESS_EVENTS_H

void process_events_init(void);
void process_events_exit(void);

/* Before a system call of an unrecorded child: its exec happens without the engine, natively. */
void process_events_before_childs_call(int number);

#endif
