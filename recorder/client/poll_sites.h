/* SPDX-License-Identifier: Apache-2.0 */
/* Finds instructions by which a thread may wait, before any has: a load from an address that does
 * not change, in a loop of a few blocks that does nothing else which others could see, and which is
 * left by what the load has read. Likewise an update that is repeated until it takes a lock. */
#ifndef POLL_SITES_H
#define POLL_SITES_H

#include "dr_api.h"

void poll_sites_init(void);
void poll_sites_exit(void);
void poll_sites_after_fork(void);

/* The block is about to be instrumented: its instructions that may wait become known
 * (polled_words.h). */
void poll_sites_find(void *drcontext, instrlist_t *block);

#endif
