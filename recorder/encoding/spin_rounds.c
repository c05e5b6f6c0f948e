/* SPDX-License-Identifier: Apache-2.0 */
#include "spin_rounds.h"

#include "code_table.h"
#include "raw_words.h"
#include "record_format.h"
#include "thread.h"

#include <string.h>

#define SPIN_PERIOD_MAX 32
#define SPIN_ROUNDS 8

static bool is_idle_round(const uint64_t *words, const uint64_t *to) {
  bool reads = false;
  for (; words < to; words += raw_words_of(words)) {
    if (word_is_marker(*words))
      return false;
    uint16_t flags = code_table_get((uint32_t)*words)->flags;
    if ((flags & BLOCK_STORES) != 0)
      return false;
    reads |= (flags & BLOCK_READS_DATA) != 0;
  }
  return reads && words == to;
}

bool spin_rounds_end(const struct thread *thread) {
  const uint64_t *end = *thread->position;
  for (ptrdiff_t period = 1; period <= SPIN_PERIOD_MAX; period++) {
    ptrdiff_t words = period * SPIN_ROUNDS;
    if (end - words - period < thread->buffer)
      return false;
    if (memcmp(end - words, end - words - period, (size_t)words * sizeof(*end)) == 0)
      return is_idle_round(end - period, end);
  }
  return false;
}
