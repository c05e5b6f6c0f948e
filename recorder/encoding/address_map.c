/* SPDX-License-Identifier: Apache-2.0 */
#include "address_map.h"

#include "arena.h"

static uint32_t place_of(const struct address_map *map, uint64_t key) {
  uint64_t hash = key * 0x9e3779b97f4a7c15ull;
  uint32_t at = (uint32_t)(hash >> 32) & (map->capacity - 1);
  while (map->entries[at].key != 0 && map->entries[at].key != key)
    at = (at + 1) & (map->capacity - 1);
  return at;
}

void *address_map_find(const struct address_map *map, uint64_t key) {
  return map->capacity == 0 ? NULL : map->entries[place_of(map, key)].value;
}

static void grow(struct address_map *map) {
  struct address_map old = *map;
  map->capacity = old.capacity == 0 ? 256 : old.capacity * 2;
  map->entries = pages_allocate(map->capacity * sizeof(map->entries[0]));
  map->used = 0;
  for (uint32_t i = 0; i < old.capacity; i++) {
    if (old.entries[i].value != NULL)
      address_map_set(map, old.entries[i].key, old.entries[i].value);
  }
  address_map_free(&old);
}

void address_map_set(struct address_map *map, uint64_t key, void *value) {
  if ((map->used + 1) * 2 > map->capacity)
    grow(map);
  struct address_map_entry *entry = &map->entries[place_of(map, key)];
  if (entry->key == 0) {
    entry->key = key;
    map->used++;
  }
  entry->value = value;
}

void address_map_free(struct address_map *map) {
  if (map->capacity != 0)
    pages_free(map->entries, map->capacity * sizeof(map->entries[0]));
}
