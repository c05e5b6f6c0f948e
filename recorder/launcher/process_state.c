/* SPDX-License-Identifier: Apache-2.0 */
#include "process_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 1024

/* What the kernel says of it behind its name; NULL, with errno, where that cannot be read. */
static const char *read_state(int process, char text[TEXT_BYTES]) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/stat", process);
  FILE *file = fopen(path, "re");
  if (file == NULL)
    return NULL;
  size_t count = fread(text, 1, TEXT_BYTES - 1, file);
  fclose(file);
  text[count] = '\0';
  const char *behind_name = strrchr(text, ')');
  return behind_name == NULL ? "" : behind_name;
}

bool process_is_running(int process, uint64_t start_time) {
  char text[TEXT_BYTES];
  const char *behind_name = read_state(process, text);
  if (behind_name == NULL)
    return errno != ENOENT && errno != ESRCH;
  char state;
  long threads;
  unsigned long long started;
  if (sscanf(behind_name,
             ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
             &state, &threads, &started) != 3)
    return false;
  bool has_ended = (state == 'Z' && threads <= 1) || state == 'X';
  return (start_time == 0 || started == start_time) && !has_ended;
}

bool process_status_unwaited(int process, int *status) {
  char text[TEXT_BYTES];
  const char *behind_name = read_state(process, text);
  if (behind_name == NULL || strncmp(behind_name, ") Z", 3) != 0)
    return false;
  return sscanf(strrchr(behind_name, ' '), "%d", status) == 1; /* the last field */
}
