/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program under the engine and waits for its end, while signals go where they would go
 * without us. */
#ifndef RECORDED_PROCESS_H
#define RECORDED_PROCESS_H

#include "control_area.h"
#include "program.h"

/* Memory shared with the program's process; `descriptor` names it to that process. */
struct control_area *control_area_create(int *descriptor);

/* Runs the program; its wait status. Ends the launcher where it cannot be started. */
int recorded_process_run(const struct program *program, struct control_area *control,
                         int control_descriptor);

#endif
