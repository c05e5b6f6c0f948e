/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in a thread's buffer between the program and the encoder: records of whole words,
 *   - executions: the block's id, then its raw words (struct block, raw_words);
 *   - markers, for events: a word with bit 63 set, for some the event's clock, and the event's
 * remaining fields as they go to the record, padded to whole words. */
#ifndef RAW_WORDS_H
#define RAW_WORDS_H

#include "record_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARKER_BIT (1ull << 63)
static inline uint64_t marker_word(uint8_t event_type, bool has_clock, uint32_t field_bytes) {
  return MARKER_BIT | (uint64_t)(has_clock != 0) << 40 | (uint64_t)event_type << 32 | field_bytes;
}
static inline bool word_is_marker(uint64_t word) { return (word & MARKER_BIT) != 0; }
static inline uint8_t marker_event(uint64_t word) { return (uint8_t)(word >> 32); }
static inline bool marker_has_clock(uint64_t word) { return (word >> 40 & 1) != 0; }
static inline uint32_t marker_field_bytes(uint64_t word) { return (uint32_t)word; }
static inline size_t marker_words(uint64_t word) {
  return 1 + (size_t)marker_has_clock(word) + ((size_t)marker_field_bytes(word) + 7) / 8;
}

/* Whether the execution that ends at `at` was interrupted, which then stands there. */
static inline bool was_interrupted(const uint64_t *at, const uint64_t *to) {
  return at < to && word_is_marker(*at) && marker_event(*at) == EVENT_INTERRUPTED;
}

/* Words of a record. */
size_t raw_words_of(const uint64_t *record);

/* How many instructions of the execution have been executed: fewer than its block has where it was
 * interrupted. */
uint32_t raw_words_executed(const uint64_t *execution, const uint64_t *to);

/* Start of the last record before `to`, where one ends; NULL where there is none. */
const uint64_t *raw_words_last_record(const uint64_t *from, const uint64_t *to);

/* Start of the record that lies across `to`; `to` where one ends right there. */
const uint64_t *raw_words_last_start(const uint64_t *from, const uint64_t *to);

#endif
