/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: faults inside a block cut its execution short, handlers are part of the program's work.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

void signals_init(void);
void signals_exit(void);

#endif
