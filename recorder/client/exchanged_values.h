/* SPDX-License-Identifier: Apache-2.0 */
/* Compilers store by an exchange where no other store may come before: what it reads is not used.
 */
#ifndef EXCHANGED_VALUES_H
#define EXCHANGED_VALUES_H

#include "dr_api.h"

/* Whether the instruction exchanges a register with memory, and the code behind it overwrites the
 * register without having used it. */
bool exchange_is_store(void *drcontext, instr_t *instr);

#endif
