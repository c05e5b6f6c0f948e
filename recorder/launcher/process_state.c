/* SPDX-License-Identifier: Apache-2.0 */
#include "process_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool process_is_running(int process, uint64_t start_time) {
  char path[64], text[1024];
  snprintf(path, sizeof(path), "/proc/%d/stat", process);
  FILE *file = fopen(path, "re");
  if (file == NULL)
    return errno != ENOENT && errno != ESRCH;
  size_t count = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  text[count] = '\0';
  const char *behind_name = strrchr(text, ')');
  char state;
  long threads;
  unsigned long long started;
  if (behind_name == NULL ||
      sscanf(behind_name,
             ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
             &state, &threads, &started) != 3)
    return false;
  bool has_ended = (state == 'Z' && threads <= 1) || state == 'X';
  return (start_time == 0 || started == start_time) && !has_ended;
}
