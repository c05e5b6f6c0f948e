/* SPDX-License-Identifier: Apache-2.0 */
/* Files of code, as they are loaded: where, and which build of which file. */
#ifndef LOADED_MODULES_H
#define LOADED_MODULES_H

#include "platform.h"
#include "thread.h"

void loaded_module_send(struct thread *thread, const struct loaded_module *module);
/* In a forked child: those that its parent had loaded. */
void loaded_modules_send_all(struct thread *thread);

#endif
