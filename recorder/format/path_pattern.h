/* SPDX-License-Identifier: Apache-2.0 */
/* Shell patterns over paths, with the meaning they have to the simulator: `?` is any character, `*`
 * any number of them (also `/`), `[a-z]` and `[!a-z]` one of a set, and a whole component `**` any
 * number of components. Characters are those of UTF-8. */
#ifndef PATH_PATTERN_H
#define PATH_PATTERN_H

/* What is wrong with a pattern, or NULL. */
const char *path_pattern_problem(const char *pattern);

/* Of a pattern with which nothing is wrong. */
int path_pattern_matches(const char *pattern, const char *path);

#endif
