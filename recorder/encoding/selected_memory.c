/* SPDX-License-Identifier: Apache-2.0 */
#include "selected_memory.h"

#include "arena.h"
#include "platform.h"
#include "pm_selector.h"
#include "record_format.h"
#include "recording.h"

#include <string.h>

#define RANGES_MIN 256u

struct range {
  uint64_t start, end;
};

bool values_are_recorded;

/* Ascending and disjoint. Readers take no lock: they look again where `changes` was odd or has
 * moved meanwhile. Arrays that became too small stay, as somebody may be reading them. */
static struct {
  struct pm_selector selector;
  void *lock; /* of writers */
  uint64_t changes;
  struct range *range;
  uint32_t count, capacity;
  struct range around; /* from the first to the last: most addresses are outside */
} selected;

void selected_memory_init(void) {
  values_are_recorded = recording.area->values != 0;
  if (!values_are_recorded)
    return;
  const char *problem = pm_selector_parse(&selected.selector, recording.area->pm_selector);
  require(problem == NULL, "the launcher let a wrong selector pass");
  selected.lock = platform_mutex_create();
  selected.capacity = RANGES_MIN;
  selected.range = pages_allocate(selected.capacity * sizeof(struct range));
}

void selected_memory_exit(void) {
  if (!values_are_recorded)
    return;
  platform_mutex_destroy(selected.lock);
  pages_free(selected.range, selected.capacity * sizeof(struct range));
}

void selected_memory_after_fork(void) {
  if (!values_are_recorded)
    return;
  selected.lock = platform_mutex_create();
  selected.changes &= ~1ull;
}

static void begin_change(void) {
  platform_mutex_lock(selected.lock);
  __atomic_add_fetch(&selected.changes, 1, __ATOMIC_SEQ_CST);
}

static void end_change(void) {
  struct range around = {0, 0};
  if (selected.count != 0)
    around = (struct range){selected.range[0].start, selected.range[selected.count - 1].end};
  __atomic_store_n(&selected.around.start, around.start, __ATOMIC_RELAXED);
  __atomic_store_n(&selected.around.end, around.end, __ATOMIC_RELAXED);
  __atomic_add_fetch(&selected.changes, 1, __ATOMIC_SEQ_CST);
  platform_mutex_unlock(selected.lock);
}

/* Number of ranges that end at or below `address`. */
static uint32_t ranges_below(const struct range *range, uint32_t count, uint64_t address) {
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (range[middle].end <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void insert_at(uint32_t at, struct range range) {
  if (selected.count == selected.capacity) {
    struct range *larger = pages_allocate(2 * selected.capacity * sizeof(struct range));
    memcpy(larger, selected.range, selected.count * sizeof(struct range));
    __atomic_store_n(&selected.range, larger, __ATOMIC_SEQ_CST);
    selected.capacity *= 2;
  }
  memmove(&selected.range[at + 1], &selected.range[at],
          (selected.count - at) * sizeof(struct range));
  selected.range[at] = range;
  selected.count++;
}

static void take_out(struct range hole) {
  uint32_t at = ranges_below(selected.range, selected.count, hole.start);
  while (at < selected.count && selected.range[at].start < hole.end) {
    struct range range = selected.range[at];
    memmove(&selected.range[at], &selected.range[at + 1],
            (selected.count - at - 1) * sizeof(struct range));
    selected.count--;
    if (range.start < hole.start)
      insert_at(at++, (struct range){range.start, hole.start});
    if (range.end > hole.end)
      insert_at(at, (struct range){hole.end, range.end});
  }
}

static void put_in(struct range range) {
  uint32_t at = ranges_below(selected.range, selected.count, range.start);
  if (at > 0 && selected.range[at - 1].end == range.start) {
    selected.range[at - 1].end = range.end;
    return;
  }
  insert_at(at, range);
}

/* What of a mapping is selected; an empty range where nothing is. */
static struct range selected_part(struct range mapping, uint8_t kind, const char *name) {
  const struct pm_selector *selector = &selected.selector;
  struct range none = {0, 0};
  switch (selector->kind) {
  case PM_HEAP:
    return kind == MAP_KIND_ANONYMOUS || kind == MAP_KIND_BREAK ? mapping : none;
  case PM_FILE:
    return kind == MAP_KIND_FILE && pm_selector_matches_file(selector, name) ? mapping : none;
  default:
    if (mapping.start < selector->start)
      mapping.start = selector->start;
    if (mapping.end > selector->end)
      mapping.end = selector->end;
    return mapping.start < mapping.end ? mapping : none;
  }
}

void selected_memory_mapped(uint64_t start, uint64_t length, uint8_t kind, const char *name) {
  if (!values_are_recorded)
    return;
  struct range mapping = {start, start + length}, part = selected_part(mapping, kind, name);
  begin_change();
  take_out(mapping);
  if (part.start < part.end)
    put_in(part);
  end_change();
}

void selected_memory_unmapped(uint64_t start, uint64_t length) {
  if (!values_are_recorded)
    return;
  begin_change();
  take_out((struct range){start, start + length});
  end_change();
}

void selected_memory_is_stack(uint64_t low, uint64_t high) {
  if (values_are_recorded && selected.selector.kind == PM_HEAP)
    selected_memory_unmapped(low, high - low);
}

static bool find(uint64_t start, uint64_t end, struct range *piece) {
  /* In this order: the array is never older, so never smaller, than the count. */
  uint32_t count = __atomic_load_n(&selected.count, __ATOMIC_ACQUIRE);
  const struct range *range = __atomic_load_n(&selected.range, __ATOMIC_ACQUIRE);
  uint32_t at = ranges_below(range, count, start);
  if (at >= count || range[at].start >= end)
    return false;
  piece->start = range[at].start > start ? range[at].start : start;
  piece->end = range[at].end < end ? range[at].end : end;
  return true;
}

bool selected_memory_find(uint64_t start, uint64_t end, uint64_t *piece_start,
                          uint64_t *piece_end) {
  while (true) {
    uint64_t before = __atomic_load_n(&selected.changes, __ATOMIC_ACQUIRE);
    struct range piece = {0, 0};
    bool is_found = start < __atomic_load_n(&selected.around.end, __ATOMIC_RELAXED) &&
                    end > __atomic_load_n(&selected.around.start, __ATOMIC_RELAXED) &&
                    find(start, end, &piece);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if ((before & 1) == 0 && before == __atomic_load_n(&selected.changes, __ATOMIC_RELAXED)) {
      *piece_start = piece.start;
      *piece_end = piece.end;
      return is_found;
    }
    platform_yield();
  }
}

bool selected_memory_may_be_file(const char *path) {
  if (!values_are_recorded || selected.selector.kind == PM_HEAP)
    return false;
  return selected.selector.kind == PM_RANGE || pm_selector_matches_file(&selected.selector, path);
}
