/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises loops that only wait: their rounds are not work, and there may be millions of them. */
#ifndef SPIN_LOOP_H
#define SPIN_LOOP_H

#include "dr_api.h"

#include <stdint.h>

/* Whether the block jumps to its own start, and a round computes everything it uses from memory and
 * from registers that no round changes. Such a loop can only end when memory changes. */
bool block_repeats_itself(instrlist_t *block);

#endif
