/* SPDX-License-Identifier: Apache-2.0 */
/* Where the program's stack begins. The kernel puts the strings of arguments and environment above
 * it, and the engine's own among them: paths of the installation, the launcher's process id. Their
 * lengths would move the stack, and with it which cache sets and pages the program uses. */
#ifndef STACK_PLACE_H
#define STACK_PLACE_H

/* Adds a variable to the environment that fills up what is the engine's or the kernel's, the
 * auxiliary vector included, to whole pages: where the stack begins then follows from the program's
 * arguments and environment alone. `engine` is the file that is executed; the variables of the
 * engine must be set. */
void stack_place_fix(const char *engine);

#endif
