// SPDX-License-Identifier: Apache-2.0
//
// Persisting: writing cache lines back to memory and waiting until they are durable. Which flush
// instruction does it is chosen at run time, so that one program serves every comparison. `clflush`
// is followed by `mfence`, the weakly ordered two by `sfence`, those of AArch64 by `dsb ish`;
// without a flush there is no fence.
#ifndef PERSIST_H
#define PERSIST_H

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#else
#error "flush instructions are known of x86-64 and AArch64 only"
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LINE_BYTES 64

enum flush {
  FLUSH_NONE,
  FLUSH_CLFLUSH, // of x86-64, like the next two
  FLUSH_CLFLUSHOPT,
  FLUSH_CLWB,
  FLUSH_CIVAC, // `dc civac` of AArch64, like the next two
  FLUSH_CVAC,
  FLUSH_CVAP,
};

static const char *const flush_names[] = {"none",  "clflush", "clflushopt", "clwb",
                                          "civac", "cvac",    "cvap"};

// What a program takes when it is not told which.
#if defined(__x86_64__)
#define FLUSH_DEFAULT FLUSH_CLFLUSH
#else
#define FLUSH_DEFAULT FLUSH_CVAC
#endif

// Looks an instruction up by its name; false if there is none of that name.
static inline bool flush_from_name(const char *name, enum flush *flush) {
  for (size_t i = 0; i < sizeof flush_names / sizeof *flush_names; i++)
    if (strcmp(name, flush_names[i]) == 0) {
      *flush = (enum flush)i;
      return true;
    }
  return false;
}

// Whether the instruction set that this program is built for has the instruction.
static inline bool flush_is_of_this_set(enum flush flush) {
#if defined(__x86_64__)
  return flush <= FLUSH_CLWB;
#else
  return flush == FLUSH_NONE || flush >= FLUSH_CIVAC;
#endif
}

#if defined(__x86_64__)

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
  default:
    return false;
  }
}

// Flushes every line that the range touches, each once, in ascending order. Durable after `fence`.
static inline void flush_range(enum flush flush, const void *start, size_t bytes) {
  const char *line = (const char *)((uintptr_t)start & ~(uintptr_t)(LINE_BYTES - 1));
  const char *end = (const char *)start + bytes;
  switch (flush) {
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
  default:
    break;
  }
}

// Orders stores and flushes before it with stores and flushes behind it.
static inline void store_fence(void) { __asm__ volatile("sfence" ::: "memory"); }

// Waits until everything this thread has flushed is durable.
static inline void fence(enum flush flush) {
  if (flush == FLUSH_CLFLUSH)
    __asm__ volatile("mfence" ::: "memory");
  else if (flush != FLUSH_NONE)
    store_fence();
  else
    __asm__ volatile("" ::: "memory");
}

#else

// Whether this processor has the instruction, as the kernel reports it: `dc cvap` came with
// Armv8.2 (HWCAP_DCPOP), the other two every processor has.
static inline bool flush_is_supported(enum flush flush) {
  static const unsigned long has_cvap = 1ul << 16;
  if (flush == FLUSH_CVAP)
    return (getauxval(AT_HWCAP) & has_cvap) != 0;
  return flush_is_of_this_set(flush);
}

// Flushes every line that the range touches, each once, in ascending order. Durable after `fence`.
static inline void flush_range(enum flush flush, const void *start, size_t bytes) {
  const char *line = (const char *)((uintptr_t)start & ~(uintptr_t)(LINE_BYTES - 1));
  const char *end = (const char *)start + bytes;
  switch (flush) {
  case FLUSH_CIVAC:
    for (; line < end; line += LINE_BYTES)
      __asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
    break;
  case FLUSH_CVAC:
    for (; line < end; line += LINE_BYTES)
      __asm__ volatile("dc cvac, %0" ::"r"(line) : "memory");
    break;
  case FLUSH_CVAP: // spelled out: an assembler for Armv8.0 has no name for it
    for (; line < end; line += LINE_BYTES)
      __asm__ volatile("sys #3, c7, c12, #1, %0" ::"r"(line) : "memory");
    break;
  default:
    break;
  }
}

// Orders stores and flushes before it with stores and flushes behind it.
static inline void store_fence(void) { __asm__ volatile("dsb ish" ::: "memory"); }

// Waits until everything this thread has flushed is durable.
static inline void fence(enum flush flush) {
  if (flush != FLUSH_NONE)
    store_fence();
  else
    __asm__ volatile("" ::: "memory");
}

#endif

// Makes the range durable before anything that follows.
static inline void persist(enum flush flush, const void *start, size_t bytes) {
  flush_range(flush, start, bytes);
  fence(flush);
}

#endif
