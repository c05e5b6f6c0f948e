/* SPDX-License-Identifier: Apache-2.0 */
#include "process_status.h"

#include "platform.h"

/* The second field, the name in parentheses, is the one that may hold spaces. */
#define NAME_FIELD 2

uint64_t process_status(enum process_status_field field) {
  char text[1024];
  int file = platform_open_to_read("/proc/self/stat");
  if (file < 0)
    return 0;
  ptrdiff_t count = platform_read_file(file, text, sizeof(text));
  platform_close_file(file);
  ptrdiff_t at = count;
  while (at > 0 && text[at - 1] != ')')
    at--;
  for (int spaces = NAME_FIELD; at > 0 && at < count && spaces < (int)field; at++)
    spaces += text[at] == ' ';
  uint64_t value = 0;
  for (; at > 0 && at < count && text[at] >= '0' && text[at] <= '9'; at++)
    value = value * 10 + (uint64_t)(text[at] - '0');
  return value;
}
