/* SPDX-License-Identifier: Apache-2.0 */
/* With --children: waits until the program and all that came of it have ended, and seals each
 * record when its process has. How a process ended is known to whoever waits for it: its parent,
 * whose client notes it, or, where that has gone before, the launcher itself. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "control_area.h"

/* Makes processes whose parent ends the launcher's own; before the program starts. */
void children_adopt(void);

/* Waits for the first process and for all others. Returns the first one's wait status; its record
 * is left to the caller. `roi` is the option, or NULL. Sets whether a child's record failed. */
int children_wait(struct control_area *control, const char *roi, int *has_failed);

#endif
