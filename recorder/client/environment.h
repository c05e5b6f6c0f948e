/* SPDX-License-Identifier: Apache-2.0 */
/* The program's environment, as it would be without us: the engine is told what to do by variables,
 * and leaves them there. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

/* Takes the engine's variables out; before the program's first instruction. */
void environment_clean(void);

#endif
