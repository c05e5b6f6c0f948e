/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded process dies with its launcher. The launcher has a pipe that nobody writes to; each
 * recorded process holds its own end of it, and when the launcher is gone, the kernel kills who
 * holds one. The parent-death signal alone would not do: a fork loses it, a change of user too, and
 * of a child it names another parent. */
#ifndef LIFELINE_H
#define LIFELINE_H

#include <stdbool.h>

/* At the start of an image. */
void lifeline_hold(void);
/* In a forked child that is recorded: its own, for its parent's. */
void lifeline_hold_in_child(void);
/* Whether this is the descriptor that it is held by. */
bool lifeline_is(int descriptor);

#endif
