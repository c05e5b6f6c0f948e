/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include "dr_api.h"

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
  void *pages =
      dr_raw_mem_alloc(round_up(bytes, dr_page_size()), DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
  if (pages == NULL) {
    dr_fprintf(STDERR, "fencepost: recorder: out of memory\n");
    dr_abort();
  }
  struct pages *entry = dr_global_alloc(sizeof(*entry));
  entry->start = pages;
  entry->bytes = round_up(bytes, dr_page_size());
  dr_mutex_lock(used.lock);
  entry->next = used.list;
  used.list = entry;
  dr_mutex_unlock(used.lock);
  return pages;
}

void pages_free(void *pages, size_t bytes) {
  dr_mutex_lock(used.lock);
  struct pages **link = &used.list;
  while (*link != NULL && (*link)->start != pages)
    link = &(*link)->next;
  struct pages *entry = *link;
  if (entry != NULL)
    *link = entry->next;
  dr_mutex_unlock(used.lock);
  if (entry != NULL)
    dr_global_free(entry, sizeof(*entry));
  dr_raw_mem_free(pages, round_up(bytes, dr_page_size()));
}

void pages_init(void) { used.lock = dr_mutex_create(); }

void pages_after_fork(void) { used.lock = dr_mutex_create(); }

int pages_contain(const void *address) {
  const char *at = address;
  int is_contained = 0;
  dr_mutex_lock(used.lock);
  for (const struct pages *entry = used.list; entry != NULL && !is_contained; entry = entry->next)
    is_contained = at >= entry->start && at < entry->start + entry->bytes;
  dr_mutex_unlock(used.lock);
  return is_contained;
}

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
