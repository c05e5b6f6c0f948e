/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of system calls: AArch64's, which are those of Linux's common table, and what x86-64
 * calls the same. */
#ifndef CALL_NUMBERS_H
#define CALL_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

enum a64_call {
  A64_READ = 63,
  A64_EXIT = 93,
  A64_EXIT_GROUP = 94,
  A64_RT_SIGACTION = 134,
  A64_RT_SIGRETURN = 139,
  A64_MUNMAP = 215,
  A64_MREMAP = 216,
  A64_CLONE = 220,
  A64_MMAP = 222,
};

/* Negative where x86-64 has none, or the encoding does not look at it. */
int call_number_on_x86_64(int number);

#endif
