/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the turn of processes that are gone to others of their tree (format/tree.h), however they
 * ended. */
#ifndef TREE_WATCH_H
#define TREE_WATCH_H

#include "control_area.h"

/* From now on, in threads of its own. */
void tree_watch_begin(struct control_area *area);

#endif
