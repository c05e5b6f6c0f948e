/* SPDX-License-Identifier: Apache-2.0 */
#include "pm_selector.h"

#include "path_pattern.h"

#include <string.h>

static int digit_value(char digit) {
  return digit >= '0' && digit <= '9'   ? digit - '0'
         : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
         : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                        : 16;
}

/* The address at the start of `text`: decimal, or hexadecimal behind 0x; behind it, or NULL. */
static const char *parse_address(const char *text, uint64_t *address) {
  int base = strncmp(text, "0x", 2) == 0 ? 16 : 10;
  if (base == 16)
    text += 2;
  if (digit_value(*text) >= base)
    return NULL;
  for (*address = 0; digit_value(*text) < base; text++) {
    if (__builtin_mul_overflow(*address, (uint64_t)base, address) ||
        __builtin_add_overflow(*address, (uint64_t)digit_value(*text), address))
      return NULL;
  }
  return text;
}

static const char *parse_range(struct pm_selector *selector, const char *text) {
  static const char no_address[] =
      "a range is two addresses below 2^64, such as range:0x1000-0x2000";
  text = parse_address(text, &selector->start);
  if (text == NULL || *text != '-')
    return no_address;
  text = parse_address(text + 1, &selector->end);
  if (text == NULL || *text != '\0')
    return no_address;
  return selector->start < selector->end
             ? NULL
             : "the range is empty: its lower address is not below its upper one";
}

const char *pm_selector_parse(struct pm_selector *selector, const char *text) {
  if (strcmp(text, "heap") == 0) {
    selector->kind = PM_HEAP;
    return NULL;
  }
  if (strncmp(text, "file:", 5) == 0) {
    selector->kind = PM_FILE;
    selector->pattern = text + 5;
    return text[5] == '\0' ? "the pattern after `file:` is empty" : path_pattern_problem(text + 5);
  }
  if (strncmp(text, "range:", 6) == 0) {
    selector->kind = PM_RANGE;
    return parse_range(selector, text + 6);
  }
  return "it has to be `heap`, `file:PATTERN` or `range:LO-HI`";
}

int pm_selector_matches_file(const struct pm_selector *selector, const char *path) {
  const char *name = path;
  for (const char *at = path; *at != '\0'; at++) {
    if (*at == '/')
      name = at + 1;
  }
  return path_pattern_matches(selector->pattern, path) ||
         path_pattern_matches(selector->pattern, name);
}
