/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program under the engine and waits for its end, while signals go where they would go
 * without us. */
#ifndef RECORDED_PROCESS_H
#define RECORDED_PROCESS_H

#include "control_area.h"
#include "emulator.h"
#include "program.h"

#include <stdbool.h>

/* Memory shared with the program's process; `descriptor` names it to that process. */
struct control_area *control_area_create(int *descriptor);

/* How many entries for processes are in use. */
unsigned control_area_count(const struct control_area *control);

/* From here on no signal that is meant for the program is lost, or ends us while our files are
 * there: it comes when the program has been started. */
void recorded_process_hold_signals(void);
/* Starts the program, under QEMU where `emulator` is not NULL. Ends the launcher where that is
 * impossible. Where `starter` is not 0, all that is recorded is killed when that process, which
 * started us, has ended. */
void recorded_process_start(const struct program *program, const struct emulator *emulator,
                            struct control_area *control, int control_descriptor, int starter);
/* Whether that has ended. */
bool recorded_process_is_abandoned(void);
/* Sends what was just sent to all to those who were being made then, and whose parent it ended. */
void recorded_process_tell_late(void);
/* Its kernel id; 0 when it has ended. */
int recorded_process_id(void);
/* Waits for its end; its wait status. */
int recorded_process_wait(void);
/* Whether there is somebody who writes what a process had in its buffers when it was killed, or
 * will. */
bool recorded_process_is_kept(const struct process_control *control);
/* The first one has ended; waits until that is done. */
void recorded_process_await_keeper(void);
/* Somebody else has waited for it. */
void recorded_process_has_ended(void);

#endif
