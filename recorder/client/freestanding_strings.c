/* SPDX-License-Identifier: Apache-2.0 */
/* The few string functions that the client uses, as it has no C library. The compiler must not turn
 * their loops into calls of themselves. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

#include <string.h>

size_t strlen(const char *text) {
  const char *end = text;
  while (*end != '\0')
    end++;
  return (size_t)(end - text);
}

int strncmp(const char *one, const char *other, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (one[i] != other[i])
      return (unsigned char)one[i] < (unsigned char)other[i] ? -1 : 1;
    if (one[i] == '\0')
      return 0;
  }
  return 0;
}

int strcmp(const char *one, const char *other) { return strncmp(one, other, (size_t)-1); }

int memcmp(const void *one, const void *other, size_t count) {
  const unsigned char *a = one, *b = other;
  for (size_t i = 0; i < count; i++) {
    if (a[i] != b[i])
      return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}
