/* SPDX-License-Identifier: Apache-2.0 */
#include "library_path.h"

#include "complaint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool library_path_find(char path[PATH_MAX], const char *name) {
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length < 0)
    fail(EXIT_OURS, "/proc/self/exe: %s", strerror(errno));
  self[length] = '\0';
  *strrchr(self, '/') = '\0';
  return snprintf(path, PATH_MAX, "%s/lib/%s", self, name) < PATH_MAX && access(path, R_OK) == 0;
}

void library_path(char path[PATH_MAX], const char *name) {
  if (!library_path_find(path, name))
    fail(EXIT_OURS, "%s is missing; run `make setup`", path);
}
