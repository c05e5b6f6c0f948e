/* SPDX-License-Identifier: Apache-2.0 */
#include "guest_mappings.h"

#include "platform.h"

#include <stdlib.h>

struct mapping {
  uint64_t start, end;
};

/* In no order. */
static struct {
  void *lock;
  struct mapping *mapping;
  uint32_t count, capacity;
} mappings;

void guest_mappings_init(void) { mappings.lock = platform_mutex_create(); }

void guest_mappings_after_fork(void) { mappings.lock = platform_mutex_create(); }

static void append(uint64_t start, uint64_t end) {
  if (start >= end)
    return;
  if (mappings.count == mappings.capacity) {
    mappings.capacity = mappings.capacity == 0 ? 64 : 2 * mappings.capacity;
    mappings.mapping = realloc(mappings.mapping, mappings.capacity * sizeof(struct mapping));
    require(mappings.mapping != NULL, "out of memory");
  }
  mappings.mapping[mappings.count++] = (struct mapping){start, end};
}

static void forget(uint64_t start, uint64_t end) {
  for (uint32_t i = 0; i < mappings.count;) {
    struct mapping whole = mappings.mapping[i];
    if (end <= whole.start || start >= whole.end) {
      i++;
      continue;
    }
    mappings.mapping[i] = mappings.mapping[--mappings.count];
    append(whole.start, start < whole.end ? start : whole.end);
    append(end > whole.start ? end : whole.start, whole.end);
  }
}

void guest_mapping_begins(uint64_t start, uint64_t bytes) {
  platform_mutex_lock(mappings.lock);
  forget(start, start + bytes);
  append(start, start + bytes);
  platform_mutex_unlock(mappings.lock);
}

void guest_mapping_ends(uint64_t start, uint64_t bytes) {
  platform_mutex_lock(mappings.lock);
  forget(start, start + bytes);
  platform_mutex_unlock(mappings.lock);
}

void guest_mapping_narrow(uint64_t address, uint64_t *start, uint64_t *end) {
  platform_mutex_lock(mappings.lock);
  for (uint32_t i = 0; i < mappings.count; i++) {
    const struct mapping *mapping = &mappings.mapping[i];
    if (address < mapping->start || address >= mapping->end)
      continue;
    *start = mapping->start > *start ? mapping->start : *start;
    *end = mapping->end < *end ? mapping->end : *end;
  }
  platform_mutex_unlock(mappings.lock);
}
