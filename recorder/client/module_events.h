/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's news of modules. */
#ifndef MODULE_EVENTS_H
#define MODULE_EVENTS_H

#include "dr_api.h"
#include "platform.h"

void module_events_init(void);
void module_events_exit(void);

/* What the record says of a module; valid while that is. */
struct loaded_module module_describe(const module_data_t *module);

#endif
