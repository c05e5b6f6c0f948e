/* SPDX-License-Identifier: Apache-2.0 */
/* The record as a file: written under a name of its own while the program runs, sealed and renamed
 * when it has ended. Killed launchers thus leave FILE.partial, never half a FILE. */
#ifndef RECORD_FILE_H
#define RECORD_FILE_H

#include "arguments.h"
#include "control_area.h"
#include "program.h"
#include "sharers.h"

#include <stdbool.h>
#include <stdint.h>

struct record_file {
  char *path;         /* absolute */
  char *partial_path; /* absolute */
  int descriptor;
  bool is_listed;                /* say where it is when it is sealed */
  bool takes_turns;              /* its threads do */
  const struct sharers *sharers; /* of the first process, once all have ended; or NULL */
  uint64_t instructions;         /* of the program, of which there are windows; 0: it is whole */
  unsigned processes; /* of its tree, once all others are sealed; 0: it is no tree's first */
};

/* Creates the partial file and writes the INFO frame. Ends the launcher where that fails. */
void record_file_create(struct record_file *file, const struct arguments *arguments,
                        const struct program *program, const struct control_area *control);

/* Opens what the child of that number has written. False, with errno, where there is nothing. */
bool record_file_open(struct record_file *file, const struct control_area *area, unsigned number);

/* Has what of its order a replay keeps found and added, cuts off what is not a whole frame, writes
 * the seal and gives the record its name. `ended` says how the program ended, `control` how many
 * threads' last buffers are missing and which limits were met. False, with a complaint and nothing
 * left behind, where that fails. */
bool record_file_seal(struct record_file *file, const char *ended,
                      const struct process_control *control);

void record_file_discard(struct record_file *file);
/* The one that the record was to be in, if nothing else is. */
void record_file_remove_folder(const struct record_file *file);

#endif
