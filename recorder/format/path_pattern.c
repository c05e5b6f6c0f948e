/* SPDX-License-Identifier: Apache-2.0 */
#include "path_pattern.h"

#include <stddef.h>
#include <stdint.h>

/* The character at `*at`, which is moved behind it. Bytes that are not UTF-8 stand for themselves.
 */
static uint32_t next_character(const char **at) {
  const unsigned char *bytes = (const unsigned char *)*at;
  uint32_t first = bytes[0];
  int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
  uint32_t character = more == 0 ? first : first & (0x3fu >> more);
  for (int i = 1; i <= more; i++) {
    if ((bytes[i] & 0xc0) != 0x80) {
      *at += 1;
      return first;
    }
    character = character << 6 | (bytes[i] & 0x3f);
  }
  *at += more + 1;
  return character;
}

static uint32_t character_at(const char *at) { return next_character(&at); }

/* The `]` that ends the set whose `[` stands at `at`, or NULL; the first character of a set is in
 * it even if it is one. */
static const char *set_end(const char *at) {
  at++;
  if (*at == '!')
    at++;
  if (*at == '\0')
    return NULL;
  next_character(&at);
  while (*at != ']' && *at != '\0')
    at++;
  return *at == ']' ? at : NULL;
}

const char *path_pattern_problem(const char *pattern) {
  for (const char *at = pattern; *at != '\0'; at++) {
    if (*at == '[') {
      at = set_end(at);
      if (at == NULL)
        return "a set of characters has no end";
    } else if (at[0] == '*' && at[1] == '*') {
      if (at[2] == '*')
        return "three `*` in a row mean nothing";
      if ((at != pattern && at[-1] != '/') || (at[2] != '\0' && at[2] != '/'))
        return "`**` has to be a whole component of the path";
      at++;
    }
  }
  return NULL;
}

static int is_in_set(const char *at, const char *end, uint32_t character) {
  while (at < end) {
    uint32_t low = next_character(&at), high = low;
    if (at + 1 < end && *at == '-') {
      at++;
      high = next_character(&at);
    }
    if (character >= low && character <= high)
      return 1;
  }
  return 0;
}

/* Whether one character fits the single-character token at `*pattern`, which is moved behind it. */
static int fits(const char **pattern, uint32_t character) {
  const char *at = *pattern;
  if (*at == '[') {
    const char *end = set_end(at);
    int is_negated = at[1] == '!';
    *pattern = end + 1;
    return is_in_set(at + 1 + is_negated, end, character) != is_negated;
  }
  uint32_t wanted = next_character(pattern);
  return *at == '?' || wanted == character;
}

/* Where a mismatch may go on: behind a star or two, which then swallow one more character. */
struct retry {
  const char *pattern;
  const char *path;
  int is_recursive; /* then only behind a `/` */
};

static int swallow_more(struct retry *retry) {
  do {
    if (retry->path == NULL || *retry->path == '\0')
      return 0;
  } while (next_character(&retry->path) != '/' && retry->is_recursive);
  return 1;
}

int path_pattern_matches(const char *pattern, const char *path) {
  /* The inner one is behind the last `*`; where it can swallow no more, the last `**` may. */
  struct retry inner = {0}, outer = {0};
  while (1) {
    if (pattern[0] == '*' && pattern[1] == '*') {
      pattern += pattern[2] == '/' ? 3 : 2;
      outer = (struct retry){pattern, path, 1};
      inner = (struct retry){0};
      continue;
    }
    if (pattern[0] == '*') {
      inner = (struct retry){++pattern, path, 0};
      continue;
    }
    if (*pattern == '\0' && *path == '\0')
      return 1;
    if (*pattern != '\0' && *path != '\0') {
      uint32_t character = character_at(path);
      if (fits(&pattern, character)) {
        next_character(&path);
        continue;
      }
    }
    struct retry *retry = swallow_more(&inner) ? &inner : &outer;
    if (retry == &outer) {
      if (!swallow_more(&outer))
        return 0;
      inner = (struct retry){0};
    }
    pattern = retry->pattern;
    path = retry->path;
  }
}
