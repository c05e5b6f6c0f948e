/* SPDX-License-Identifier: Apache-2.0 */
#include "process_status.h"

#include "dr_api.h"

/* The second field, the name in parentheses, is the one that may hold spaces. */
#define NAME_FIELD 2

uint64_t process_status(enum process_status_field field) {
  char text[1024];
  file_t file = dr_open_file("/proc/self/stat", DR_FILE_READ);
  if (file == INVALID_FILE)
    return 0;
  ssize_t count = dr_read_file(file, text, sizeof(text));
  dr_close_file(file);
  ssize_t at = count;
  while (at > 0 && text[at - 1] != ')')
    at--;
  for (int spaces = NAME_FIELD; at > 0 && at < count && spaces < (int)field; at++)
    spaces += text[at] == ' ';
  uint64_t value = 0;
  for (; at > 0 && at < count && text[at] >= '0' && text[at] <= '9'; at++)
    value = value * 10 + (uint64_t)(text[at] - '0');
  return value;
}
