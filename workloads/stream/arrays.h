// SPDX-License-Identifier: Apache-2.0
//
// The three arrays, what they hold after any number of kernels, and the kernels.
//
// Kernel 0 is copy (c = a), 1 scale (b = factor * c), 2 add (c = a + b), 3 triad
// (a = b + factor * c); kernel 4 is copy again, and so on. Each works element by element, so what
// an element holds depends on its first value and on how many kernels it has seen.
#ifndef STREAM_ARRAYS_H
#define STREAM_ARRAYS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "persist.h"

enum { KERNELS = 4, ARRAYS = 3 };

static const char *const kernel_names[KERNELS] = {"copy", "scale", "add", "triad"};
// As STREAM counts them: what the loop reads and writes, without what a cache fetches to be
// written.
static const unsigned kernel_bytes[KERNELS] = {16, 16, 24, 24};

// Which array a kernel writes and which it reads.
struct operands {
  unsigned to, x, y;
};
static const struct operands operands[KERNELS] = {{2, 0, 0}, {1, 2, 2}, {2, 0, 1}, {0, 1, 2}};

// A repetition multiplies a value by factor * (2 + factor) = 0.96, and each kernel changes what it
// writes, so no lost write goes unnoticed; nothing overflows or vanishes.
static const double factor = 0.4;

// Elements begin with one of this many values: a prime, so that no shifted access goes unnoticed.
enum { INITIAL_VALUES = 61 };

static inline double initial_value(unsigned array, size_t element) {
  return array == 0 ? 1.0 + (double)(element % INITIAL_VALUES) : 0.0;
}

static inline double result_of(unsigned kernel, double x, double y) {
  switch (kernel) {
  case 0:
    return x;
  case 1:
    return factor * x;
  case 2:
    return x + y;
  default:
    return x + factor * y;
  }
}

// What elements hold after so many kernels, for each initial value.
struct expected {
  double values[ARRAYS][INITIAL_VALUES];
};

static inline void expect(struct expected *expected, uint64_t kernels) {
  for (unsigned array = 0; array < ARRAYS; array++)
    for (size_t i = 0; i < INITIAL_VALUES; i++)
      expected->values[array][i] = initial_value(array, i);
  for (uint64_t done = 0; done < kernels; done++) {
    struct operands own = operands[done % KERNELS];
    for (size_t i = 0; i < INITIAL_VALUES; i++)
      expected->values[own.to][i] =
          result_of(done % KERNELS, expected->values[own.x][i], expected->values[own.y][i]);
  }
}

typedef void kernel_loop(double *restrict to, const double *x, const double *y, size_t count);

// Ordinary stores: the compiler makes vectors of these loops and must not make memcpy of the first,
// which would choose its stores by the length (see the Makefile).
static void copy_ordinary(double *restrict to, const double *x, const double *y, size_t count) {
  (void)y;
  for (size_t i = 0; i < count; i++)
    to[i] = x[i];
}

static void scale_ordinary(double *restrict to, const double *x, const double *y, size_t count) {
  (void)y;
  for (size_t i = 0; i < count; i++)
    to[i] = factor * x[i];
}

static void add_ordinary(double *restrict to, const double *x, const double *y, size_t count) {
  for (size_t i = 0; i < count; i++)
    to[i] = x[i] + y[i];
}

static void triad_ordinary(double *restrict to, const double *x, const double *y, size_t count) {
  for (size_t i = 0; i < count; i++)
    to[i] = x[i] + factor * y[i];
}

// What compilers make of STREAM's copy.
static void copy_library(double *restrict to, const double *x, const double *y, size_t count) {
  (void)y;
  memcpy(to, x, count * sizeof *to);
}

// Two elements past the caches.
static inline void store_pair_past_caches(double *to, double first, double second) {
#if defined(__x86_64__)
  _mm_stream_pd(to, _mm_set_pd(second, first));
#else
  __asm__ volatile("stnp %d1, %d2, [%0]" ::"r"(to), "w"(first), "w"(second) : "memory");
#endif
}

// The pair's address has to be a multiple of its size: an element before and one behind may be
// left.
__attribute__((always_inline)) static inline void
past_caches(unsigned kernel, double *restrict to, const double *x, const double *y, size_t count) {
  size_t i = 0;
  for (; i < count && (uintptr_t)&to[i] % (2 * sizeof *to) != 0; i++)
    to[i] = result_of(kernel, x[i], y[i]);
  for (; i + 1 < count; i += 2)
    store_pair_past_caches(&to[i], result_of(kernel, x[i], y[i]),
                           result_of(kernel, x[i + 1], y[i + 1]));
  for (; i < count; i++)
    to[i] = result_of(kernel, x[i], y[i]);
  store_fence();
}

#define PAST_CACHES(NAME, KERNEL)                                                                  \
  static void NAME##_past_caches(double *restrict to, const double *x, const double *y,            \
                                 size_t count) {                                                   \
    past_caches(KERNEL, to, x, y, count);                                                          \
  }

PAST_CACHES(copy, 0)
PAST_CACHES(scale, 1)
PAST_CACHES(add, 2)
PAST_CACHES(triad, 3)

// By `enum stores`.
static kernel_loop *const pointer_loops[][KERNELS] = {
    {copy_ordinary, scale_ordinary, add_ordinary, triad_ordinary},
    {copy_past_caches, scale_past_caches, add_past_caches, triad_past_caches},
    {copy_library, scale_ordinary, add_ordinary, triad_ordinary},
};

#endif
