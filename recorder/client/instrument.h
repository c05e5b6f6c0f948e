/* SPDX-License-Identifier: Apache-2.0 */
/* The code that is woven into the program's blocks. Each execution of a block advances the thread's
 * position by the block's raw words, writes the block's id to the first, and before each
 * instruction that needs it one address; nothing else, and no flags are touched. */
#ifndef INSTRUMENT_H
#define INSTRUMENT_H

#include "dr_api.h"

void instrument_init(void);
void instrument_exit(void);

/* Whether the fault is that of our own store meeting the page behind a full buffer; then the buffer
 * has been emptied and the store can be repeated. */
bool instrument_handle_fault(void *drcontext, dr_siginfo_t *information);

#endif
