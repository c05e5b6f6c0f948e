/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of spins.c in instructions of AArch64, each between markers. */
#include <stdint.h>
#include <stdio.h>

#define MARK_BEGIN "movz xzr, #0x5001, lsl #48\n\t"
#define MARK_END "\n\tmovz xzr, #0x5002, lsl #48"

/* A block that jumps to itself until memory changes. */
#define WAIT_PLAINLY(flag)                                                                         \
  __asm__ volatile(MARK_BEGIN "1: ldr w9, [%0]\n\tcbz w9, 1b" MARK_END ::"r"(&(flag))              \
                   : "x9", "memory")

/* Two blocks, one with a pause, until memory changes. */
#define WAIT_PAUSING(flag)                                                                         \
  __asm__ volatile(MARK_BEGIN "b 2f\n1: yield\n2: ldar w9, [%0]\n\tcmp w9, #0\n\tb.eq 1b" MARK_END \
                   :                                                                               \
                   : "r"(&(flag))                                                                  \
                   : "x9", "memory", "cc")

/* A pause in each of 5000 rounds, but it is the counter that ends it. */
#define COUNT_PAUSING(flag)                                                                        \
  __asm__ volatile(MARK_BEGIN "mov w10, #5000\n"                                                   \
                              "1: ldr w9, [%0]\n\tcbnz w9, 2f\n\t"                                 \
                              "yield\n\tsubs w10, w10, #1\n\tb.ne 1b\n2:" MARK_END                 \
                   :                                                                               \
                   : "r"(&(flag))                                                                  \
                   : "x9", "x10", "memory", "cc")

/* No pause, reads the same address over and over: work. */
#define MULTIPLY(product, rounds, factor)                                                          \
  __asm__ volatile(MARK_BEGIN                                                                      \
                   "1: ldr x9, [%2]\n\tmul %0, %0, x9\n\tsubs %1, %1, #1\n\tb.ne 1b" MARK_END      \
                   : "+r"(product), "+r"(rounds)                                                   \
                   : "r"(&(factor))                                                                \
                   : "x9", "memory", "cc")
