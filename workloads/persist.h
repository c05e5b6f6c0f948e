// SPDX-License-Identifier: Apache-2.0
//
// Persisting: writing cache lines back to memory and waiting until they are durable. Which flush
// instruction does it is chosen at run time, so that one program serves every comparison. `clflush`
// is followed by `mfence`, the weakly ordered two by `sfence`; without a flush there is no fence.
#ifndef PERSIST_H
#define PERSIST_H

#include <cpuid.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LINE_BYTES 64

enum flush { FLUSH_NONE, FLUSH_CLFLUSH, FLUSH_CLFLUSHOPT, FLUSH_CLWB };

static const char *const flush_names[] = {"none", "clflush", "clflushopt", "clwb"};

// Looks an instruction up by its name; false if there is none of that name.
static inline bool flush_from_name(const char *name, enum flush *flush) {
  for (size_t i = 0; i < sizeof flush_names / sizeof *flush_names; i++)
    if (strcmp(name, flush_names[i]) == 0) {
      *flush = (enum flush)i;
      return true;
    }
  return false;
}

// Whether this processor has the instruction, as CPUID reports it.
static inline bool flush_is_supported(enum flush flush) {
  unsigned eax, ebx, ecx, edx;
  switch (flush) {
  case FLUSH_NONE:
    return true;
  case FLUSH_CLFLUSH:
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (edx & 1u << 19); // CLFSH: cpuid.h has no name
  case FLUSH_CLFLUSHOPT:
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_CLFLUSHOPT);
  case FLUSH_CLWB:
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_CLWB);
  }
  return false;
}

// Flushes every line that the range touches, each once, in ascending order. Durable after `fence`.
static inline void flush_range(enum flush flush, const void *start, size_t bytes) {
  const char *line = (const char *)((uintptr_t)start & ~(uintptr_t)(LINE_BYTES - 1));
  const char *end = (const char *)start + bytes;
  switch (flush) {
  case FLUSH_NONE:
    break;
  case FLUSH_CLFLUSH:
    for (; line < end; line += LINE_BYTES)
      __asm__ volatile("clflush (%0)" ::"r"(line) : "memory");
    break;
  case FLUSH_CLFLUSHOPT:
    for (; line < end; line += LINE_BYTES)
      __asm__ volatile("clflushopt (%0)" ::"r"(line) : "memory");
    break;
  case FLUSH_CLWB:
    for (; line < end; line += LINE_BYTES)
      __asm__ volatile("clwb (%0)" ::"r"(line) : "memory");
    break;
  }
}

// Waits until everything this thread has flushed is durable.
static inline void fence(enum flush flush) {
  if (flush == FLUSH_CLFLUSH)
    __asm__ volatile("mfence" ::: "memory");
  else if (flush != FLUSH_NONE)
    __asm__ volatile("sfence" ::: "memory");
  else
    __asm__ volatile("" ::: "memory");
}

// Makes the range durable before anything that follows.
static inline void persist(enum flush flush, const void *start, size_t bytes) {
  flush_range(flush, start, bytes);
  fence(flush);
}

#endif
