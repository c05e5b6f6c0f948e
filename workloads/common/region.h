// SPDX-License-Identifier: Apache-2.0
//
// Markers of the region of interest: instructions that do nothing on any processor, and which a
// replay recognises by their bytes. The code in them is 1 at the beginning, 2 at the end, and 3
// where one ends and the next begins while everything goes on.
//
// x86-64: an 8-byte NOP whose 32-bit displacement is 0x50430000 plus the code. AArch64: a move of
// 0x5000 plus the code to the zero register. A region belongs to the process, not to a thread.
#ifndef REGION_H
#define REGION_H

#if defined(__aarch64__)
#define REGION_MARKER(code) "movz xzr, #0x5000 + " #code ", lsl #48"
#else
#define REGION_MARKER(code) ".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long 0x50430000 + " #code
#endif

static inline void region_begin(void) { __asm__ volatile(REGION_MARKER(1)::: "memory"); }

static inline void region_end(void) { __asm__ volatile(REGION_MARKER(2)::: "memory"); }

static inline void region_next(void) { __asm__ volatile(REGION_MARKER(3)::: "memory"); }

#endif
