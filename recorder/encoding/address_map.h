/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what belongs to an address (or to another number that is never 0): the state of a
 * synchronisation object, the thread behind a handle. The caller serialises its use. */
#ifndef ADDRESS_MAP_H
#define ADDRESS_MAP_H

#include <stdint.h>

struct address_map_entry {
  uint64_t key; /* 0: empty */
  void *value;  /* NULL: removed */
};

struct address_map {
  struct address_map_entry *entries;
  uint32_t capacity; /* a power of two, or 0 */
  uint32_t used;
};

void *address_map_find(const struct address_map *map, uint64_t key);
/* Replaces what is there; NULL removes. */
void address_map_set(struct address_map *map, uint64_t key, void *value);
void address_map_free(struct address_map *map);

#endif
