/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher says when it cannot go on: one line on standard error, and its exit code. */
#ifndef COMPLAINT_H
#define COMPLAINT_H

enum launcher_exit {
  EXIT_WRONG_OPTIONS = 2,
  EXIT_OURS = 125, /* a failure of the recorder, not of the program */
  EXIT_NOT_EXECUTABLE = 126,
  EXIT_NOT_FOUND = 127,
};

/* Prints "fencepost-record: MESSAGE". */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Likewise, then ends the launcher. */
void fail(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

#endif
