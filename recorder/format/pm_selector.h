/* SPDX-License-Identifier: Apache-2.0 */
/* What is persistent memory, as a person says it: `heap`, `file:PATTERN` or `range:LO-HI`. The
 * simulator understands the same (docs/record-format.md). */
#ifndef PM_SELECTOR_H
#define PM_SELECTOR_H

#include <stdint.h>

enum pm_selector_kind { PM_HEAP, PM_FILE, PM_RANGE };

struct pm_selector {
  enum pm_selector_kind kind;
  const char *pattern; /* PM_FILE: inside of the selector's text */
  uint64_t start, end; /* PM_RANGE: the upper one excluded */
};

/* What is wrong with `text`, or NULL; then `selector` is what it says. */
const char *pm_selector_parse(struct pm_selector *selector, const char *text);

/* Whether the pattern of a PM_FILE selector matches this path, or its name without the folder. */
int pm_selector_matches_file(const struct pm_selector *selector, const char *path);

#endif
