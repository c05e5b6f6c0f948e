/* SPDX-License-Identifier: Apache-2.0 */
/* The program's files of code: where they are loaded, and which of their functions matter. */
#ifndef GUEST_MODULES_H
#define GUEST_MODULES_H

#include "platform.h"
#include "thread.h"

void guest_modules_init(void);

/* Before the program's first instruction: those that the emulator has loaded. */
void guest_modules_find(void);
/* The first thread tells of them. */
void guest_modules_send(struct thread *thread);

/* The thread has mapped a file to be executed. */
void guest_module_is_mapped(struct thread *thread, uint64_t address);

void guest_modules_each(void (*visit)(const struct loaded_module *module, void *user_data),
                        void *user_data);

/* Its path, "" where it is not known. */
const char *guest_program_path(void);

#endif
