/* SPDX-License-Identifier: Apache-2.0 */
/* Where the kernel put the program's arguments, environment and auxiliary vector: at the stack
 * pointer that the program starts with. */
#ifndef INITIAL_STACK_H
#define INITIAL_STACK_H

#include <stdint.h>

/* 0 where the kernel does not say. */
uint64_t initial_stack_pointer(void);

#endif
