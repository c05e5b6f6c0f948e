/* SPDX-License-Identifier: Apache-2.0 */
#include "initial_stack.h"

#include "dr_api.h"

/* proc(5): startstack is field 28 of /proc/self/stat, the 26th behind the name in parentheses. */
#define FIELDS_BEHIND_NAME 26

uint64_t initial_stack_pointer(void) {
  char text[1024];
  file_t file = dr_open_file("/proc/self/stat", DR_FILE_READ);
  if (file == INVALID_FILE)
    return 0;
  ssize_t count = dr_read_file(file, text, sizeof(text));
  dr_close_file(file);
  ssize_t at = count;
  while (at > 0 && text[at - 1] != ')')
    at--;
  for (int spaces = 0; at > 0 && at < count && spaces < FIELDS_BEHIND_NAME; at++)
    spaces += text[at] == ' ';
  uint64_t value = 0;
  for (; at > 0 && at < count && text[at] >= '0' && text[at] <= '9'; at++)
    value = value * 10 + (uint64_t)(text[at] - '0');
  return value;
}
