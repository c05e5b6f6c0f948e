// SPDX-License-Identifier: Apache-2.0
//
// Numbers that look random but follow from their position alone, so that any part of an input can
// be made again when it is checked (the finalizer of SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
#ifndef SCRAMBLE_H
#define SCRAMBLE_H

#include <stdint.h>

static inline uint64_t scramble(uint64_t position) {
  uint64_t bits = (position + 1) * UINT64_C(0x9e3779b97f4a7c15);
  bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
  return bits ^ (bits >> 31);
}

#endif
