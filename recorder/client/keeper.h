/* SPDX-License-Identifier: Apache-2.0 */
/* A process that has the memory of the recorded one and outlives it: where that is killed, it
 * writes what was in the buffers. It has none of its descriptors but the record, and nobody else's
 * signals reach it. */
#ifndef KEEPER_H
#define KEEPER_H

/* Of this image; one of an image before is not needed any more. */
void keeper_begin(void);
/* The process ends by itself. */
void keeper_end(void);

#endif
