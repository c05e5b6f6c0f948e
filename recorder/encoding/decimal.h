/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in paths, written without the C library. */
#ifndef DECIMAL_H
#define DECIMAL_H

#include <stdint.h>
#include <string.h>

#define DECIMAL_BYTES_MAX 11 /* of 32 bits, the end included */

/* Writes the digits and a zero behind them; returns where that stands. */
static inline char *decimal_write(char *out, uint32_t number) {
  char digits[DECIMAL_BYTES_MAX];
  int count = 0;
  do
    digits[count++] = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  while (count > 0)
    *out++ = digits[--count];
  *out = '\0';
  return out;
}

#define DESCRIPTOR_LINK_BYTES (sizeof("/proc/self/fd/") + DECIMAL_BYTES_MAX)

/* The link by which the kernel shows the file of an open descriptor. */
static inline void descriptor_link(char link[DESCRIPTOR_LINK_BYTES], int descriptor) {
  static const char folder[] = "/proc/self/fd/";
  memcpy(link, folder, sizeof(folder));
  decimal_write(link + sizeof(folder) - 1, (uint32_t)descriptor);
}

#endif
