/* SPDX-License-Identifier: Apache-2.0 */
/* Finds instructions by which a thread may wait, and those by which it says that it will, before
 * any has been executed. */
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
