/* SPDX-License-Identifier: Apache-2.0 */
/* Unsigned LEB128 and zigzag, as in docs/record-format.md. */
#ifndef VARINT_H
#define VARINT_H

#include <stdint.h>

#define VARINT_BYTES_MAX 10

static inline uint8_t *varint_write(uint8_t *out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  *out++ = (uint8_t)value;
  return out;
}

/* Of a value that was written whole. */
static inline uint64_t varint_read(const uint8_t *in) {
  uint64_t value = 0;
  int shift = 0;
  do {
    value |= (uint64_t)(*in & 0x7f) << shift;
    shift += 7;
  } while (*in++ >= 0x80);
  return value;
}

static inline uint64_t zigzag(int64_t value) {
  return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline uint8_t *svarint_write(uint8_t *out, int64_t value) {
  return varint_write(out, zigzag(value));
}

#endif
