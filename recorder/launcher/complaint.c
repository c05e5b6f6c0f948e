/* SPDX-License-Identifier: Apache-2.0 */
#include "complaint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void print(const char *format, va_list arguments) {
  char line[8192];
  vsnprintf(line, sizeof(line), format, arguments);
  fprintf(stderr, "fencepost-record: %s\n", line);
}

void complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
}

void fail(int exit_code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
  exit(exit_code);
}
