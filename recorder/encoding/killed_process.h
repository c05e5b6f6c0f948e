/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that was killed had not yet encoded. Its memory outlives it in a process that
 * shares it (../client/keeper.h). */
#ifndef KILLED_PROCESS_H
#define KILLED_PROCESS_H

/* Writes the last frames of its threads, in whatever they were interrupted. */
void killed_process_save(void);

#endif
