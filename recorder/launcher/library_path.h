/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's libraries, in a folder beside the launcher. */
#ifndef LIBRARY_PATH_H
#define LIBRARY_PATH_H

#include <limits.h>
#include <stdbool.h>

/* False where there is no such file. */
bool library_path_find(char path[PATH_MAX], const char *name);

/* Ends the launcher where the library is missing. */
void library_path(char path[PATH_MAX], const char *name);

#endif
