/* SPDX-License-Identifier: Apache-2.0 */
/* What the program has mapped by each of its calls: the kernel shows neighbours as one, and QEMU
 * makes neighbours of what the program maps in a row, threads' stacks among it. */
#ifndef GUEST_MAPPINGS_H
#define GUEST_MAPPINGS_H

#include <stdint.h>

void guest_mappings_init(void);
void guest_mappings_after_fork(void);

void guest_mapping_begins(uint64_t start, uint64_t bytes);
void guest_mapping_ends(uint64_t start, uint64_t bytes);

/* Narrows [start, end) to what one call has mapped around the address, if one has. */
void guest_mapping_narrow(uint64_t address, uint64_t *start, uint64_t *end);

#endif
