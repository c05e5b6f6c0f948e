/* SPDX-License-Identifier: Apache-2.0 */
/* Whether and for which process we record, and the counters that belong to the process as a whole.
 */
#ifndef RECORDING_H
#define RECORDING_H

#include "control_area.h"

#include <stdbool.h>
#include <stdint.h>

struct recording {
  struct control_area *area;
  struct process_control *control; /* this process's */
  uint64_t *clock;                 /* its own, or that of the tree */
  struct tree *tree;               /* that it belongs to, or NULL */
  uint32_t image;                  /* program images so far, this one included: 1 before any exec */
  int32_t process;
  bool is_stopped;                         /* the record cannot go on; the program does */
  char library_folder[CONTROL_PATH_BYTES]; /* where the recorder and its engine are */
};

extern struct recording recording;

/* Maps the launcher's control area, in the file of this path; `library_path` is the recorder's own.
 * False where this process is not to be recorded: a child of the recorded one, or no launcher. */
bool recording_open(const char *library_path, const char *control_path);
/* In a forked child: from now on its own record. False where it is to have none. */
bool recording_continue_in_child(void);
void recording_close(void);

/* In which order recorded processes came: 0 is the first, and -1 that of none. */
int32_t recording_number(const struct process_control *control);
/* Whether the record is that of a child. */
bool recording_is_of_child(void);
/* Where the record is written. */
#define RECORD_PATH_BYTES (2 * CONTROL_PATH_BYTES)
void recording_path(char path[RECORD_PATH_BYTES]);

/* Whether a file is the recorder's or its engine's. */
bool recording_has_file(const char *path);

/* The entry of a recorded process that has not been sealed, or NULL. */
struct process_control *recording_of_process(int32_t process);
/* The entry of the latest recorded process with that kernel id, or NULL. */
struct process_control *recording_of_ended(int32_t process);

/* Ends the recording for a reason that the launcher will report; the program goes on. */
void recording_stop(enum stop_reason reason);

/* The next place in the process clock. */
static inline uint64_t clock_advance(void) {
  return __atomic_add_fetch(recording.clock, 1, __ATOMIC_SEQ_CST);
}

static inline uint64_t clock_now(void) {
  return __atomic_load_n(recording.clock, __ATOMIC_SEQ_CST);
}

/* The caller's process, asked of the kernel: after a vfork the engine's own notion is the parent's.
 */
int32_t process_id_of_caller(void);

#endif
