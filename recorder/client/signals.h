/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: faults inside a block cut its execution short, handlers are part of the program's work.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <stdint.h>

void signals_init(void);
void signals_exit(void);
/* Of any system call. */
void signals_after_call(int number, int64_t result);

#endif
