/* SPDX-License-Identifier: Apache-2.0 */
/* A lock in memory that processes share, which is held for moments. It is the kernel id of the
 * process that has it, so that of one that died with it another can give it back. */
#ifndef PROCESS_LOCK_H
#define PROCESS_LOCK_H

#include <stdint.h>

void process_lock_take(int32_t *lock, int32_t process);
void process_lock_give(int32_t *lock);
/* The process is gone. */
void process_lock_forget(int32_t *lock, int32_t process);

#endif
