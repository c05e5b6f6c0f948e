/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what is to be run, as the shell and the kernel would, and says why it cannot be recorded.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

enum machine { MACHINE_X86_64, MACHINE_AARCH64 };

struct program {
  char *path;       /* of an executable: the program's, or its interpreter's */
  char **arguments; /* NULL-terminated; the first is its name */
  enum machine machine;
  char *loader; /* that one of AArch64 asks for, as a path in its own system; or NULL */
};

/* Ends the launcher where there is nothing to run. */
void program_find(struct program *program, char **command);

#endif
