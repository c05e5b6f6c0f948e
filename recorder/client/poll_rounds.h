/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an instruction waits by its code: a load from an address that does not change, in a loop
 * of a few blocks that does nothing else which others could see, and which is left by what the load
 * has read; or an update that is repeated until it takes a lock. */
#ifndef POLL_ROUNDS_H
#define POLL_ROUNDS_H

#include "code_walk.h"

enum poll_kind {
  POLLS_NOTHING,
  POLLS_WORD,
  POLLS_LOCK, /* and takes it by changing the word */
};

/* Of the instruction at `pc`, in a block that begins at `block`, or before which nothing is known:
 * then that is the same. Only one search goes on at a time. */
enum poll_kind poll_rounds_find(struct code_walk *walk, app_pc block, app_pc pc);

#endif
