/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of the program, as QEMU tells of them before and behind. */
#ifndef GUEST_CALLS_H
#define GUEST_CALLS_H

#include "plugin_api.h"

void guest_call_begins(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                       uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
                       uint64_t a8);
void guest_call_ends(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result);

#endif
