// SPDX-License-Identifier: Apache-2.0
//
// What the study's kernels do in their region of interest, counted while they run as they are.
// Compiled in ahead of a program, this counts the lines that all threads flush between the two
// markers and looks at the heap when the region begins; at its end both go to standard error:
//
//   lines=15234 heap=301232
//
// Under callgrind with --instr-atstart=no the region alone is counted. kernels.py builds and runs
// it:
//
//   gcc -include kernel_counts.h -DPERSIST_FILE='"persist.h"' -DREGION_FILE='"region.h"' ... fft.c
#ifndef KERNEL_COUNTS_H
#define KERNEL_COUNTS_H

#define _GNU_SOURCE
#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

// The programs' own files for these are left out; their text, but for these functions, is kept.
#define flush_range instructions_flush_range
#define persist instructions_persist
#include PERSIST_FILE
#undef flush_range
#undef persist
#define region_begin marker_begin
#define region_end marker_end
#include REGION_FILE
#undef region_begin
#undef region_end

static _Atomic bool is_in_region;
static _Atomic uint64_t lines_flushed;
static size_t heap_bytes;

static inline void flush_range(enum flush flush, const void *start, size_t bytes) {
  uintptr_t first = (uintptr_t)start / LINE_BYTES;
  uintptr_t end = ((uintptr_t)start + bytes + LINE_BYTES - 1) / LINE_BYTES;
  if (flush != FLUSH_NONE && bytes > 0 && is_in_region)
    atomic_fetch_add(&lines_flushed, end - first);
  instructions_flush_range(flush, start, bytes);
}

static inline void persist(enum flush flush, const void *start, size_t bytes) {
  flush_range(flush, start, bytes);
  fence(flush);
}

static inline void region_begin(void) {
  struct mallinfo2 heap = mallinfo2();
  heap_bytes = heap.uordblks + heap.hblkhd;
  is_in_region = true;
  CALLGRIND_START_INSTRUMENTATION;
  marker_begin();
}

static inline void region_end(void) {
  marker_end();
  CALLGRIND_STOP_INSTRUMENTATION;
  is_in_region = false;
  fprintf(stderr, "lines=%" PRIu64 " heap=%zu\n", lines_flushed, heap_bytes);
}

#endif
