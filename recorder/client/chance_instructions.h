/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions whose results differ from one recording to the next: time stamps and random numbers.
 * Where threads take turns the program gets ours instead. */
#ifndef CHANCE_INSTRUCTIONS_H
#define CHANCE_INSTRUCTIONS_H

void chance_instructions_init(void);
void chance_instructions_exit(void);

#endif
