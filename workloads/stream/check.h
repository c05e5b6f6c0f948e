// SPDX-License-Identifier: Apache-2.0
//
// Whether elements hold what they should: all of them after a run, and after a power cut those that
// the program had called durable.
#ifndef STREAM_CHECK_H
#define STREAM_CHECK_H

#include <stdbool.h>
#include <stdlib.h>

#include "arrays.h"
#include "pmdk.h"
#include "settings.h"

// Parts begin at whole lines of elements.
static inline size_t part_begin(const struct settings *settings, unsigned thread) {
  return settings->elements / LINE_ELEMENTS * thread / settings->threads * LINE_ELEMENTS;
}

// How many elements of a part a thread makes durable at once.
static inline size_t block_of(const struct settings *settings, size_t part) {
  return settings->block == 0 || settings->block > part ? part : settings->block;
}

static bool holds(double *const arrays[ARRAYS], size_t element, const struct expected *expected) {
  for (unsigned array = 0; array < ARRAYS; array++)
    if (arrays[array][element] != expected->values[array][element % INITIAL_VALUES])
      return false;
  return true;
}

// Whether every element has seen so many kernels.
static bool all_hold(const struct settings *settings, double *const arrays[ARRAYS],
                     uint64_t kernels) {
  static struct expected expected;
  expect(&expected, kernels);
  for (size_t element = 0; element < settings->elements; element++)
    if (!holds(arrays, element, &expected))
      return false;
  return true;
}

// Whether a thread's part is what it called durable, in which case the result is NULL. The kernel
// that is under way has been through the first blocks of the part and through none behind the next
// one; of that one each element may have been, unless it belongs to a transaction.
static const char *part_fault(const struct settings *settings, double *const arrays[ARRAYS],
                              unsigned thread, uint64_t blocks_done) {
  static struct expected before, after;
  size_t begin = part_begin(settings, thread), end = part_begin(settings, thread + 1);
  size_t block = block_of(settings, end - begin);
  uint64_t of_kernel = (end - begin + block - 1) / block;
  uint64_t kernels = blocks_done / of_kernel;
  size_t done = begin + blocks_done % of_kernel * block;
  size_t under_way = settings->durable == DURABLE_TRANSACTION ? 0 : block;
  expect(&before, kernels);
  expect(&after, kernels + 1);
  for (size_t element = begin; element < end; element++) {
    if (element < done) {
      if (!holds(arrays, element, &after))
        return "an element that was called durable is lost";
    } else if (!holds(arrays, element, &before) &&
               !(element < done + under_way && holds(arrays, element, &after))) {
      return settings->durable == DURABLE_TRANSACTION
                 ? "an element is neither as before nor as after its transaction"
                 : "an element holds what no kernel has left there";
    }
  }
  return NULL;
}

// What is wrong with a pool after a power cut, NULL if nothing is.
static const char *pool_fault(const struct settings *settings, double *const arrays[ARRAYS]) {
  if (settings->durable == DURABLE_NONE)
    return NULL;
  for (unsigned thread = 0; thread < settings->threads; thread++) {
    const char *fault = part_fault(settings, arrays, thread, pool_progress()[thread].blocks);
    if (fault != NULL)
      return fault;
  }
  return NULL;
}

#endif
