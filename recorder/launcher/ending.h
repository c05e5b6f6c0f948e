/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a record when its process has ended. */
#ifndef ENDING_H
#define ENDING_H

#include "control_area.h"
#include "record_file.h"

#include <stdbool.h>

/* A wait status that nobody has seen. */
#define STATUS_UNKNOWN (-1)

/* Says what is wrong with the record, if anything is, and seals it with how the process ended, or
 * discards it where it is not whole. False then. `roi` is the option, or NULL. */
bool ending_seal(struct record_file *file, const struct process_control *control, const char *roi,
                 int status);

#endif
