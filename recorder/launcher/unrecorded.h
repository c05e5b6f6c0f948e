/* SPDX-License-Identifier: Apache-2.0 */
/* Says which children of the program were not recorded: their work may be all that there was. */
#ifndef UNRECORDED_H
#define UNRECORDED_H

#include "control_area.h"

/* One line, or nothing where there were none. */
void unrecorded_say(const struct control_area *control);

#endif
