/* SPDX-License-Identifier: Apache-2.0 */
/* QEMU, under which programs of AArch64 are recorded: where it is, whether the recorder understands
 * it, and how it is started. */
#ifndef EMULATOR_H
#define EMULATOR_H

#include "arguments.h"
#include "program.h"

#include <stdbool.h>

struct emulator {
  char *path;
  char engine[32]; /* "QEMU 7.2.22" */
  bool compares_addresses;
  const char *sysroot; /* folder in which the program's loader and libraries are looked for first */
};

/* Finds it and tries it out. Ends the launcher, saying what to type, where the program cannot be
 * recorded here. */
void emulator_find(struct emulator *emulator, const struct arguments *arguments,
                   const struct program *program);

/* Becomes it, with the program and the recorder, which finds the control area by its descriptor in
 * the process `launcher`. Only returns, with errno, when that fails. */
void emulator_become(const struct emulator *emulator, const struct program *program,
                     int control_descriptor, int launcher);

#endif
