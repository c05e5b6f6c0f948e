/* SPDX-License-Identifier: Apache-2.0 */
/* System calls by which a program would take from the recorder, which lives in its process, what
 * that cannot do without: its memory, the calls that it makes itself, room in memory and files.
 * They do not reach the kernel, and the launcher says so at the end. */
#ifndef WITHHELD_CALLS_H
#define WITHHELD_CALLS_H

#include "dr_api.h"

#include <stdint.h>

/* Mappings that the recorder and the engine have from the start. */
void withheld_calls_protect(uint64_t start, uint64_t end);

/* Before a system call: whether it is withheld. The program has its result then. */
bool withheld_call(void *drcontext, int number);

#endif
