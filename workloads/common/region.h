// SPDX-License-Identifier: Apache-2.0
//
// Markers of the region of interest: an 8-byte NOP whose 32-bit displacement is 0x50430000 plus a
// code, 1 at the beginning and 2 at the end. They do nothing on any processor; a recorder
// recognises them in the instruction bytes. A region belongs to the process, not to a thread.
// AArch64 has no marker yet: its programs are one region.
#ifndef REGION_H
#define REGION_H

#if defined(__x86_64__)
#define REGION_MARKER(code) ".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long 0x50430000 + " #code
#else
#define REGION_MARKER(code) ""
#endif

static inline void region_begin(void) { __asm__ volatile(REGION_MARKER(1)::: "memory"); }

static inline void region_end(void) { __asm__ volatile(REGION_MARKER(2)::: "memory"); }

#endif
