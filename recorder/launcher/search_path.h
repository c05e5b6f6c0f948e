/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a program by its name, as the shell would. */
#ifndef SEARCH_PATH_H
#define SEARCH_PATH_H

/* The path of the first file of that name that can be executed, else of the first one; NULL where
 * there is none. A name with a folder is its path. */
char *search_path(const char *name);

#endif
