/* SPDX-License-Identifier: Apache-2.0 */
#include "search_path.h"

#include "complaint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *search_path(const char *name) {
  if (strchr(name, '/') != NULL)
    return strdup(name);
  const char *path = getenv("PATH");
  if (path == NULL)
    path = "/usr/local/bin:/usr/bin:/bin";
  char *not_executable = NULL;
  while (1) {
    size_t length = strcspn(path, ":");
    char *candidate;
    if (asprintf(&candidate, "%.*s%s%s", (int)length, path, length == 0 ? "" : "/", name) < 0)
      fail(EXIT_OURS, "out of memory");
    struct stat status;
    if (stat(candidate, &status) == 0 && S_ISREG(status.st_mode)) {
      if (access(candidate, X_OK) == 0)
        return candidate;
      if (not_executable == NULL)
        not_executable = candidate;
    }
    if (path[length] == '\0')
      break;
    path += length + 1;
  }
  return not_executable;
}
