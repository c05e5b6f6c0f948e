/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the recorder understands the QEMU that it runs in: on a program whose flushes are known
 * (check_program.h), which the launcher has it execute before it records another one. */
#ifndef CHECK_H
#define CHECK_H

#include "plugin_api.h"

/* Watches the known program. The process ends with code 0 where all came out, and otherwise says
 * why on standard error. */
void check_install(qemu_plugin_id_t id);

#endif
