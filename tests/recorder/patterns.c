/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines "PATTERN<tab>PATH" and prints for each 1 or 0, whether it matches, or what is wrong
 * with the pattern. */
#include "path_pattern.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  char line[4096];
  while (fgets(line, sizeof(line), stdin) != NULL) {
    char *path = strchr(line, '\t');
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    const char *problem = path_pattern_problem(line);
    if (problem != NULL)
      puts(problem);
    else
      printf("%d\n", path_pattern_matches(line, path));
  }
  return 0;
}
