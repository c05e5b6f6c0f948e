/* SPDX-License-Identifier: Apache-2.0 */
/* Where the kernel put the program's arguments, environment and auxiliary vector: at the stack
 * pointer that the program starts with. */
#ifndef INITIAL_STACK_H
#define INITIAL_STACK_H

#include <stdint.h>

/* 0 where the kernel does not say. */
uint64_t initial_stack_pointer(void);

/* Before the program's first instruction: its random bytes are drawn by us, and it knows nothing of
 * the clocks that the kernel maps into it, so that it asks by system calls. */
void initial_stack_hide_chance(void);

#endif
