/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what is to be run, as the shell and the kernel would, and says why it cannot be recorded.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

struct program {
  char *path;       /* of an x86-64 executable: the program's, or its interpreter's */
  char **arguments; /* NULL-terminated; the first is its name */
};

/* Ends the launcher where there is nothing to run. */
void program_find(struct program *program, char **command);

#endif
