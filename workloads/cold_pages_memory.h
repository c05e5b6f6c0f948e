// SPDX-License-Identifier: Apache-2.0
//
// The persistent memory of `cold_pages`, and what is demanded of it after a power cut: that every
// page is whole in exactly one of the two places, with the contents of its last acknowledged write,
// or of the one that was under way.
#ifndef COLD_PAGES_MEMORY_H
#define COLD_PAGES_MEMORY_H

#include <lz4.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "persist.h"
#include "scramble.h"

enum { PAGE = 4096, UNIT = 256, PAGES_MAX = 1 << 16, ACCESSES_MAX = 1 << 24 };

// Where a page is, in one word that changes at once: nowhere yet, in a frame, or in so many bytes
// of the pool from that unit on (all bytes of a page: not compressed).
typedef uint64_t place_word;
enum kind { NOWHERE, FRAME, ENTRY };

static place_word place_of(enum kind kind, uint64_t number, uint64_t bytes) {
  return number << 32 | bytes << 8 | kind;
}

static enum kind kind_of(place_word place) { return place & 0xff; }
static uint64_t number_of(place_word place) { return place >> 32; }
static uint64_t bytes_of(place_word place) { return place >> 8 & 0xffffff; }
static uint64_t units_of(uint64_t bytes) { return (bytes + UNIT - 1) / UNIT; }

struct place {
  alignas(LINE_BYTES) place_word word;
};

struct acknowledged {
  alignas(LINE_BYTES) uint64_t writes;
};

struct memory {
  uint64_t pages, frames, units, accesses;
  enum flush flush;
  const unsigned char *contents; // of all pages, as they come
  // In the pool:
  struct place *places;       // by page
  struct acknowledged *acks;  // by page
  unsigned char (*in)[PAGE];  // frames
  unsigned char (*out)[UNIT]; // entries
  // Volatile:
  uint64_t *owners; // by frame: its page + 1; 0: none
  bool *is_used;    // by unit
  uint64_t *writes; // by page: those that were found in it
};

static void use_units(const struct memory *memory, uint64_t first, uint64_t bytes, bool is_used) {
  memset(&memory->is_used[first], is_used, units_of(bytes));
}

// Gives a page's contents, from its entry; false if that is damaged.
static bool load(const struct memory *memory, place_word place, unsigned char *to) {
  const unsigned char *entry = memory->out[number_of(place)];
  uint64_t bytes = bytes_of(place);
  if (bytes < PAGE)
    return LZ4_decompress_safe((const char *)entry, (char *)to, (int)bytes, PAGE) == PAGE;
  memcpy(to, entry, PAGE);
  return true;
}

// A page of which so many writes have been done: their number is its first word.
static void make_page(const struct memory *memory, uint64_t page, uint64_t writes,
                      unsigned char *to) {
  memcpy(to, memory->contents + page * PAGE, PAGE);
  memcpy(to, &writes, sizeof writes);
}

// The page of the n-th access, counted from 0.
static uint64_t page_of(const struct memory *memory, uint64_t n) {
  return scramble(n) % memory->pages;
}

// What a power cut, or a run, has left.
struct state {
  uint64_t accesses, acknowledged, in_frames, in_entries, entry_bytes;
  const char *fault; // NULL: none
};

// No other page is there. Notes that this one is.
static const char *claim(const struct memory *memory, uint64_t page, place_word place) {
  uint64_t number = number_of(place), bytes = bytes_of(place);
  if (kind_of(place) == FRAME) {
    if (number >= memory->frames || bytes != PAGE)
      return "a place that there is not";
    bool is_taken = memory->owners[number] != 0;
    memory->owners[number] = page + 1;
    return is_taken ? "two pages in one frame" : NULL;
  }
  if (kind_of(place) != ENTRY || bytes == 0 || bytes > PAGE ||
      number + units_of(bytes) > memory->units)
    return "a place that there is not";
  bool is_taken = memchr(&memory->is_used[number], true, units_of(bytes)) != NULL;
  use_units(memory, number, bytes, true);
  return is_taken ? "two pages in one entry" : NULL;
}

static const char *examine(const struct memory *memory, uint64_t page, struct state *state) {
  static unsigned char found[PAGE], expected[PAGE];
  place_word place = memory->places[page].word;
  uint64_t acknowledged = memory->acks[page].writes, *writes = &memory->writes[page];
  *writes = 0;
  if (place == NOWHERE)
    return acknowledged == 0 ? NULL : "a page is in neither place";
  const char *fault = claim(memory, page, place);
  if (fault != NULL)
    return fault;
  bool is_entry = kind_of(place) == ENTRY;
  if (!is_entry)
    memcpy(found, memory->in[number_of(place)], PAGE);
  else if (!load(memory, place, found))
    return "an entry cannot be decompressed";
  memcpy(writes, found, sizeof *writes);
  make_page(memory, page, *writes, expected);
  if (memcmp(found, expected, PAGE) != 0)
    return is_entry ? "an entry does not hold its page" : "a frame does not hold its page";
  if (*writes < acknowledged)
    return "an acknowledged write is lost";
  state->accesses += *writes;
  state->acknowledged += acknowledged;
  state->in_frames += !is_entry;
  state->in_entries += is_entry;
  state->entry_bytes += is_entry ? bytes_of(place) : 0;
  return NULL;
}

// Examines every page, and makes the volatile part from what is found.
static struct state examine_all(const struct memory *memory) {
  struct state state = {0};
  memset(memory->owners, 0, memory->frames * sizeof *memory->owners);
  memset(memory->is_used, 0, memory->units * sizeof *memory->is_used);
  for (uint64_t page = 0; page < memory->pages && state.fault == NULL; page++)
    state.fault = examine(memory, page, &state);
  if (state.fault != NULL)
    return state;
  // Accesses have their order, so it is known which writes there have to be.
  for (uint64_t n = 0; n < memory->accesses && n < state.accesses; n++)
    memory->writes[page_of(memory, n)]--;
  for (uint64_t page = 0; page < memory->pages; page++)
    if (memory->writes[page] != 0)
      state.fault = "a write that was not the next one";
  if (state.accesses > state.acknowledged + 1)
    state.fault = "more writes than were begun";
  return state;
}

#endif
