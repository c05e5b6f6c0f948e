/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the C library by which a thread that waits lets others run. */
#ifndef YIELDING_FUNCTIONS_H
#define YIELDING_FUNCTIONS_H

#include "dr_api.h"

#include <stdbool.h>

/* Whether a call through the pointer at this address, which the dynamic linker fills, is of such a
 * function: it is known by its name, since the linker may not have filled it yet. */
bool is_yielding_function(app_pc pointer);

/* Whether the system call of this number is what they do. */
bool is_yielding_system_call(int64_t number);

#endif
