/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include "platform.h"

#define CHUNK_BYTES (256u * 1024)

struct arena_chunk {
  struct arena_chunk *next;
  size_t bytes;
  size_t used;
};

/* What is in use: few and large pieces. */
static struct {
  void *lock;
  struct pages {
    struct pages *next;
    char *start;
    size_t bytes;
  } *list;
} used;

static size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

void *pages_allocate(size_t bytes) {
  void *pages = platform_map_pages(round_up(bytes, platform_page_bytes()));
  require(pages != NULL, "out of memory");
  struct pages *entry = platform_allocate(sizeof(*entry));
  entry->start = pages;
  entry->bytes = round_up(bytes, platform_page_bytes());
  platform_mutex_lock(used.lock);
  entry->next = used.list;
  used.list = entry;
  platform_mutex_unlock(used.lock);
  return pages;
}

void pages_free(void *pages, size_t bytes) {
  platform_mutex_lock(used.lock);
  struct pages **link = &used.list;
  while (*link != NULL && (*link)->start != pages)
    link = &(*link)->next;
  struct pages *entry = *link;
  if (entry != NULL)
    *link = entry->next;
  platform_mutex_unlock(used.lock);
  if (entry != NULL)
    platform_free(entry, sizeof(*entry));
  platform_unmap_pages(pages, round_up(bytes, platform_page_bytes()));
}

void pages_init(void) { used.lock = platform_mutex_create(); }

void pages_after_fork(void) { used.lock = platform_mutex_create(); }

int pages_overlap(const void *start, size_t bytes) {
  const char *from = start;
  int is_found = 0;
  platform_mutex_lock(used.lock);
  for (const struct pages *entry = used.list; entry != NULL && !is_found; entry = entry->next)
    is_found = from < entry->start + entry->bytes && from + bytes > entry->start;
  platform_mutex_unlock(used.lock);
  return is_found;
}

int pages_first(uint64_t start, uint64_t end, uint64_t *from, uint64_t *to) {
  int is_found = 0;
  platform_mutex_lock(used.lock);
  for (const struct pages *entry = used.list; entry != NULL; entry = entry->next) {
    uint64_t first = (uint64_t)(uintptr_t)entry->start, behind = first + entry->bytes;
    if (first < end && behind > start && (!is_found || first < *from)) {
      *from = first;
      *to = behind;
      is_found = 1;
    }
  }
  platform_mutex_unlock(used.lock);
  return is_found;
}

int pages_contain(const void *address) { return pages_overlap(address, 1); }

void *arena_allocate(struct arena *arena, size_t bytes) {
  struct arena_chunk *chunk = arena->chunks;
  bytes = round_up(bytes, 16);
  if (chunk == NULL || chunk->used + bytes > chunk->bytes) {
    size_t header = round_up(sizeof(*chunk), 16);
    size_t chunk_bytes = header + bytes > CHUNK_BYTES ? header + bytes : CHUNK_BYTES;
    chunk = pages_allocate(chunk_bytes);
    chunk->next = arena->chunks;
    chunk->bytes = chunk_bytes;
    chunk->used = header;
    arena->chunks = chunk;
  }
  void *piece = (char *)chunk + chunk->used;
  chunk->used += bytes;
  return piece;
}

void arena_free(struct arena *arena) {
  while (arena->chunks != NULL) {
    struct arena_chunk *chunk = arena->chunks;
    arena->chunks = chunk->next;
    pages_free(chunk, chunk->bytes);
  }
}
