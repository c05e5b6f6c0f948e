/* SPDX-License-Identifier: Apache-2.0 */
#include "complaint.h"

#include "utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES 8192

/* One line, in which control characters and what is not UTF-8 stand as \xNN: names of programs and
 * files may hold what a terminal obeys. */
static void print_line(const char *line) {
  char shown[4 * LINE_BYTES], *out = shown;
  for (const unsigned char *at = (const unsigned char *)line; *at != '\0';) {
    int length = utf8_length(at);
    bool is_control = *at < 0x20 || *at == 0x7f || (*at == 0xc2 && length == 2 && at[1] < 0xa0);
    if (length == 0 || is_control) {
      out += sprintf(out, "\\x%02x", *at++);
      continue;
    }
    for (; length > 0; length--)
      *out++ = (char)*at++;
  }
  *out = '\0';
  fprintf(stderr, "fencepost-record: %s\n", shown);
}

static void print(const char *format, va_list arguments) {
  char line[LINE_BYTES];
  vsnprintf(line, sizeof(line), format, arguments);
  print_line(line);
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
