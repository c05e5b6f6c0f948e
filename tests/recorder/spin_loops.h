/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of spins.c in instructions of x86-64, each between markers. */
#include "case.h"

/* A block that jumps to itself until memory changes. */
#define WAIT_PLAINLY(flag)                                                                         \
  __asm__ volatile(MARK_BEGIN                                                                      \
                   "1: mov %0, %%eax\n\ttest %%eax, %%eax\n\tje 1b" MARK_END ::"m"(flag)           \
                   : "rax", "memory", "cc")

/* Two blocks, one with a pause, until memory changes. */
#define WAIT_PAUSING(flag)                                                                         \
  __asm__ volatile(MARK_BEGIN "jmp 2f\n1: pause\n2: cmpl $0, %0\n\tje 1b" MARK_END ::"m"(flag)     \
                   : "memory", "cc")

/* A pause in each of 5000 rounds, but it is the counter that ends it. */
#define COUNT_PAUSING(flag)                                                                        \
  __asm__ volatile(MARK_BEGIN "mov $5000, %%ecx\n"                                                 \
                              "1: mov %0, %%eax\n\ttest %%eax, %%eax\n\tjne 2f\n\t"                \
                              "pause\n\tsub $1, %%ecx\n\tjne 1b\n2:" MARK_END ::"m"(flag)          \
                   : "rax", "rcx", "memory", "cc")

/* No pause, reads the same address over and over: work. */
#define MULTIPLY(product, rounds, factor)                                                          \
  __asm__ volatile(MARK_BEGIN "1: imul %2, %0\n\tdec %1\n\tjne 1b" MARK_END                        \
                   : "+r"(product), "+r"(rounds)                                                   \
                   : "m"(factor)                                                                   \
                   : "memory", "cc")
