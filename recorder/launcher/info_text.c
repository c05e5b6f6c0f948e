/* SPDX-License-Identifier: Apache-2.0 */
#include "info_text.h"

#include "complaint.h"
#include "record_format.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Length of the UTF-8 sequence at `text`, or 0 where there is none. */
static int utf8_length(const unsigned char *text) {
  int length = text[0] < 0x80                       ? 1
               : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
               : (text[0] & 0xf0) == 0xe0           ? 3
               : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                    : 0;
  for (int i = 1; i < length; i++) {
    if ((text[i] & 0xc0) != 0x80)
      return 0;
  }
  if (length > 1) { /* overlong forms, surrogates, beyond the last character */
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
      return 0;
  }
  return length;
}

/* A JSON string; bytes that are not UTF-8 become U+FFFD. NULL becomes null. */
static void put_string(FILE *out, const char *text) {
  if (text == NULL) {
    fputs("null", out);
    return;
  }
  putc('"', out);
  for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
    int length = utf8_length(at);
    if (length == 0) {
      fputs("\\ufffd", out);
      at++;
    } else if (*at < 0x20 || *at == '"' || *at == '\\') {
      fprintf(out, "\\u%04x", *at);
      at++;
    } else {
      fwrite(at, 1, (size_t)length, out);
      at += length;
    }
  }
  putc('"', out);
}

char *info_text(const struct arguments *arguments, const struct program *program) {
  char *text = NULL, *path = realpath(program->path, NULL);
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  if (out == NULL)
    fail(EXIT_OURS, "out of memory");
  fprintf(out, "{\"format_version\": %d, \"isa\": \"x86-64\", ", RECORD_VERSION);
  fprintf(out, "\"recorder\": \"fencepost-record %s\", \"engine\": \"DynamoRIO %s\", ",
          RECORDER_VERSION, ENGINE_VERSION);
  fputs("\"program\": ", out);
  put_string(out, path == NULL ? program->path : path);
  fputs(", \"arguments\": [", out);
  for (char **argument = program->arguments; *argument != NULL; argument++) {
    if (argument != program->arguments)
      fputs(", ", out);
    put_string(out, *argument);
  }
  fprintf(out, "], \"page_size\": %ld, \"line_size\": %d, \"options\": {\"values\": %s, \"pm\": ",
          sysconf(_SC_PAGESIZE), CACHE_LINE_BYTES, arguments->values ? "true" : "false");
  put_string(out, arguments->pm);
  fputs(", \"roi\": ", out);
  put_string(out, arguments->roi);
  fputs("}}", out);
  fclose(out);
  free(path);
  return text;
}
