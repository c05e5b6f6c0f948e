/* SPDX-License-Identifier: Apache-2.0 */
/* Updates that come before polling: a thread that takes its turn at a lock, or arrives at a
 * barrier's counter, may have to wait at another word then. */
#ifndef POLL_ENTRIES_H
#define POLL_ENTRIES_H

#include "code_walk.h"

struct poll_entry {
  bool counts;   /* arrives; else it takes its turn */
  app_pc look;   /* polls behind it */
  app_pc set_up; /* stores to what that will poll, before; NULL where nothing does */
};

bool poll_entry_may_be(instr_t *instr);

/* Whether the update at `pc` is one, in a block that begins at `block`. Only one search goes on at
 * a time. */
bool poll_entry_find(void *drcontext, app_pc block, app_pc pc, uint32_t steps,
                     struct poll_entry *entry);

#endif
