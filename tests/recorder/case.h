/* SPDX-License-Identifier: Apache-2.0 */
/* A case: a few instructions between two ROI markers, and what they are expected to access, printed
 * as "case NAME" and one line "KIND ADDRESS BYTES" per access, in the order of the record's slots.
 */
#ifndef CASE_H
#define CASE_H

#include <stdint.h>
#include <stdio.h>

#define MARK_BEGIN ".byte 0x0f,0x1f,0x84,0x00\n\t.long 0x50430001\n\t"
#define MARK_END "\n\t.byte 0x0f,0x1f,0x84,0x00\n\t.long 0x50430002\n\t"

static inline void case_begins(const char *name) { printf("case %s\n", name); }

static inline void expect(const char *kind, const void *address, unsigned bytes) {
  printf("%s %llu %u\n", kind, (unsigned long long)(uintptr_t)address, bytes);
}

#endif
