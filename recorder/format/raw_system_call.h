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

static inline long raw_system_call_of_5(long number, uintptr_t first, uintptr_t second,
                                        uintptr_t third, uintptr_t fourth, uintptr_t fifth) {
  register uintptr_t r10 __asm__("r10") = fourth;
  register uintptr_t r8 __asm__("r8") = fifth;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
}

#endif
