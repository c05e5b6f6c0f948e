// SPDX-License-Identifier: Apache-2.0
//
// What all programs share of their command lines: numbers with bounds, the choice of the flush
// instruction, and the way in which a wrong option ends the program (a reason, the usage line, exit
// status 2).
#ifndef OPTIONS_H
#define OPTIONS_H

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "persist.h"

enum { EXIT_USAGE = 2 };

// Says what is wrong with the arguments and how they should look, and ends the program.
__attribute__((noreturn, format(printf, 2, 3))) static inline void
usage_error(const char *usage, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\nusage: %s\n", usage);
  exit(EXIT_USAGE);
}

// Reads a whole number from `low` to `high`; a suffix K, M or G multiplies it by a power of 1024.
static inline uint64_t number_option(const char *usage, const char *option, const char *text,
                                     uint64_t low, uint64_t high) {
  char *end;
  errno = 0;
  uint64_t value = strtoull(text, &end, 10);
  bool is_number = *text >= '0' && *text <= '9' && errno == 0;
  unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  if (shift != 0)
    end++;
  if (!is_number || *end != '\0' || value > UINT64_MAX >> shift || value << shift < low ||
      value << shift > high)
    usage_error(usage, "%s takes a number from %" PRIu64 " to %" PRIu64 ", not '%s'", option, low,
                high, text);
  return value << shift;
}

#if defined(__x86_64__)
#define FLUSH_CHOICES "none, clflush, clflushopt or clwb"
#define INSTRUCTION_SET "x86-64"
#else
#define FLUSH_CHOICES "none, civac, cvac or cvap"
#define INSTRUCTION_SET "AArch64"
#endif

// Reads the name of a flush instruction and refuses one that this processor lacks.
static inline enum flush flush_option(const char *usage, const char *text) {
  enum flush flush;
  if (!flush_from_name(text, &flush))
    usage_error(usage, "--flush takes " FLUSH_CHOICES ", not '%s'", text);
  if (!flush_is_of_this_set(flush))
    usage_error(usage,
                "--flush %s: this program is built for " INSTRUCTION_SET
                ", which has no such instruction; it takes " FLUSH_CHOICES,
                text);
  if (!flush_is_supported(flush))
    usage_error(usage, "this processor has no %s", text);
  return flush;
}

#endif
