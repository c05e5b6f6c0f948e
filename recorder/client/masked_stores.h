/* SPDX-License-Identifier: Apache-2.0 */
/* Vector stores of which a mask says which lanes they write. */
#ifndef MASKED_STORES_H
#define MASKED_STORES_H

#include "dr_api.h"

bool instr_is_masked_store(instr_t *instr);

/* Whether the mask has a lane that is on. True of what is no masked store. `context` is that behind
 * the instruction, which leaves its mask as it was. */
bool masked_store_writes(instr_t *instr, const dr_mcontext_t *context);

#endif
