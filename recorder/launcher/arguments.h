/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: fencepost-record [-o FILE] [--values --pm SELECTOR] [--roi START:STOP
 * [--warm N]] [--every N --keep M] [--children] [--seed N] [--schedule N] [--real-time] [--sysroot
 * FOLDER] -- PROGRAM ARGUMENTS… */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "control_area.h"

#include <stdbool.h>
#include <stdint.h>

struct arguments {
  const char *output;   /* NULL: PROGRAM.fencepost */
  const char *roi;      /* or NULL */
  uint64_t every, keep; /* windows of so many instructions, one in so many; 0: none */
  uint64_t warm;        /* before it, in instructions; CONTROL_WARM_ALL */
  const char *pm;       /* or NULL */
  const char *sysroot;  /* or NULL */
  bool values;
  bool children;
  bool lists; /* say which records there are */
  bool real_time;
  uint64_t seed;
  uint64_t schedule; /* from 1 */
  bool compare_addresses;
  int starter;       /* process id, or 0 */
  bool is_temporary; /* the record, and the folder that it is in */
  char **program;    /* NULL-terminated, at least one */
};

/* Ends the launcher with exit code 2 where the options are wrong, with 0 after --help or --version.
 */
void arguments_parse(struct arguments *arguments, int argc, char **argv);

#endif
