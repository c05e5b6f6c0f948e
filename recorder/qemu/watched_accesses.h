/* SPDX-License-Identifier: Apache-2.0 */
/* What is done around single accesses, beside keeping their addresses: with --values writes are put
 * in order, from the second thread on, and their values kept. */
#ifndef WATCHED_ACCESSES_H
#define WATCHED_ACCESSES_H

#include "guest.h"
#include "plan.h"
#include "plugin_api.h"

/* Whether the instruction has to be the last one of its block. */
bool watched_access_ends_block(uint32_t word);

/* An instruction of a block that is translated. `next` is the one behind it, NULL where the
 * translation block ends with it. To be called behind what takes its address, and before anything
 * is asked for at `next`. */
void watched_access_translate(const struct plan *plan, uint32_t index, uint32_t word,
                              struct qemu_plugin_insn *instruction, struct qemu_plugin_insn *next);

/* The thread has come to a stop: within a block, before the instruction at `within_at`, or between
 * two, where that is NO_ADDRESS. Ends the access that it was about to make last, if that has not
 * ended: it has been made, unless the thread stopped before it; and the block. */
void watched_access_stops(struct guest *guest, uint64_t within_at);

#endif
