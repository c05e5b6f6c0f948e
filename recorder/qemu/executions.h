/* SPDX-License-Identifier: Apache-2.0 */
/* What QEMU's generated code calls: before each block of the program, and before those instructions
 * whose addresses cannot be told at the block's start. */
#ifndef EXECUTIONS_H
#define EXECUTIONS_H

#include "plugin_api.h"

/* Divides a translation block into blocks of the record, and has QEMU call for them. */
void executions_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *block);

/* With `is_checked` each address that the recorder computes is compared with QEMU's. How many were,
 * and how many differed. */
void executions_check(void);
void executions_checked(uint64_t *compared, uint64_t *different);

#endif
