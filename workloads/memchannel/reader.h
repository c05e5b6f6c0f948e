// SPDX-License-Identifier: Apache-2.0
//
// Threads that only read, as much as they can: `stream` one line after the other, `blocks` 4 KB at
// a time at any place. Each goes over memory of its own, and loads a word of each line: a loop of
// wide loads has no more either. A unit is 4 KB.
#ifndef READER_H
#define READER_H

#include "broken.h"
#include "scramble.h"
#include "tenant.h"

enum { READER_LINE_WORDS = 8, READER_UNIT_LINES = 64 };

struct reader_thread {
  uint64_t sum;
  const uint64_t *memory;
} __attribute__((aligned(64)));

struct reader {
  uint64_t units_of_memory;
  struct reader_thread threads[];
};

static inline uint64_t reader_word(unsigned thread, uint64_t at) {
  return at * 3 + ((uint64_t)thread << 40) + 1;
}

// The size is MB of each thread.
static void reader_load(struct tenant *tenant) {
  struct reader *reader = tenant->state =
      arena_take(&tenant->arena, sizeof *reader + tenant->threads * sizeof(struct reader_thread));
  uint64_t lines = (tenant->size << 20) / ARENA_LINE_BYTES;
  reader->units_of_memory = lines / READER_UNIT_LINES;
  for (unsigned thread = 0; thread < tenant->threads; thread++) {
    uint64_t *memory = arena_take(&tenant->arena, lines * ARENA_LINE_BYTES);
    for (uint64_t line = 0; line < lines; line++)
      memory[line * READER_LINE_WORDS] = reader_word(thread, line);
    reader->threads[thread].memory = memory;
  }
}

static inline uint64_t reader_sum(const uint64_t *memory) {
  uint64_t sums[4] = {0};
  const unsigned lines = BROKEN == WORD_LEFT_OUT ? READER_UNIT_LINES - 4 : READER_UNIT_LINES;
  for (unsigned line = 0; line < lines; line += 4)
    for (unsigned i = 0; i < 4; i++)
      sums[i] += memory[(line + i) * READER_LINE_WORDS];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

// The first line of a unit.
static inline uint64_t reader_place(const struct reader *reader, uint64_t unit, bool is_anywhere) {
  return (is_anywhere ? scramble(unit) : unit) % reader->units_of_memory * READER_UNIT_LINES;
}

static inline void reader_work(struct tenant *tenant, unsigned thread, uint64_t unit,
                               bool is_anywhere) {
  struct reader *reader = tenant->state;
  struct reader_thread *own = &reader->threads[thread];
  uint64_t line = reader_place(reader, unit, is_anywhere);
  own->sum += reader_sum(&own->memory[line * READER_LINE_WORDS]);
}

static bool reader_is_right(const struct tenant *tenant, bool is_anywhere) {
  const struct reader *reader = tenant->state;
  for (unsigned thread = 0; thread < tenant->threads; thread++) {
    uint64_t sum = 0;
    for (uint64_t unit = 0; unit < tenant->units; unit++)
      for (uint64_t line = 0; line < READER_UNIT_LINES; line++)
        sum += reader_word(thread, reader_place(reader, unit, is_anywhere) + line);
    if (sum != reader->threads[thread].sum)
      return false;
  }
  return true;
}

static void stream_work(struct tenant *tenant, unsigned thread, uint64_t unit) {
  reader_work(tenant, thread, unit, false);
}

static bool stream_is_right(const struct tenant *tenant) { return reader_is_right(tenant, false); }

static void blocks_work(struct tenant *tenant, unsigned thread, uint64_t unit) {
  reader_work(tenant, thread, unit, true);
}

static bool blocks_is_right(const struct tenant *tenant) { return reader_is_right(tenant, true); }

static const struct tenant_kind stream_kind = {"stream", false, reader_load, stream_work,
                                               stream_is_right};
static const struct tenant_kind blocks_kind = {"blocks", false, reader_load, blocks_work,
                                               blocks_is_right};

#endif
