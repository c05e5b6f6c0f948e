/* SPDX-License-Identifier: Apache-2.0 */
#include "raw_words.h"

#include "code_table.h"
#include "platform.h"
#include "varint.h"

size_t raw_words_of(const uint64_t *record) {
  size_t words = word_is_marker(*record) ? marker_words(*record)
                                         : code_table_get((uint32_t)*record)->raw_words;
  require(words != 0, "an execution of a block that there is not");
  return words;
}

uint32_t raw_words_executed(const uint64_t *execution, const uint64_t *to) {
  const struct block *block = code_table_get((uint32_t)*execution);
  const uint64_t *next = execution + block->raw_words;
  return was_interrupted(next, to) ? (uint32_t)varint_read((const uint8_t *)(next + 1))
                                   : block->instructions;
}

const uint64_t *raw_words_last_record(const uint64_t *from, const uint64_t *to) {
  const uint64_t *last = NULL;
  for (; from < to; from += raw_words_of(from))
    last = from;
  return last;
}

const uint64_t *raw_words_last_start(const uint64_t *from, const uint64_t *to) {
  while (from < to) {
    size_t count = raw_words_of(from);
    if (from + count > to)
      return from;
    from += count;
  }
  return from;
}
