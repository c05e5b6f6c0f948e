/* SPDX-License-Identifier: Apache-2.0 */
/* A system call of our own, past the engine. */
#ifndef RAW_SYSTEM_CALL_H
#define RAW_SYSTEM_CALL_H

#include <stdint.h>

/* The result, or the negative errno. */
static inline long raw_system_call(long number, uintptr_t first, uintptr_t second,
                                   uintptr_t third) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(first), "S"(second), "d"(third)
                   : "rcx", "r11", "memory");
  return result;
}

#endif
