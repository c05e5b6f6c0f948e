/* SPDX-License-Identifier: Apache-2.0 */
/* The INFO frame's JSON: what was recorded, with what, and how. The launcher writes that of the
 * first process, the client that of its children. */
#ifndef RECORD_INFO_H
#define RECORD_INFO_H

#include <stddef.h>
#include <stdint.h>

#define ISA_X86_64 "x86-64"
#define ISA_AARCH64 "aarch64"

struct info {
  const char *isa, *engine;
  const char *program;
  const char *const *arguments; /* NULL-terminated */
  uint64_t page_size;
  int has_values;
  const char *pm;  /* or NULL */
  const char *roi; /* or NULL */
  uint64_t every;  /* it comes again each so many instructions; 0: it does not */
  uint64_t warm;   /* instructions recorded before it; UINT64_MAX: all */
  /* Numbers of a child, from 1, and of its parent: 0 is the first process, -1 one without a record.
   */
  int32_t process, parent;
};

/* Writes as much of the text as `capacity` takes, without an end mark; its whole length. */
size_t info_text(char *out, size_t capacity, const struct info *info);

#endif
