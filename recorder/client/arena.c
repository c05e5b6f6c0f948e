/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include "dr_api.h"

#define CHUNK_BYTES (256u * 1024)

struct arena_chunk {
  struct arena_chunk *next;
  size_t bytes;
  size_t used;
};

static size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

void *pages_allocate(size_t bytes) {
  void *pages =
      dr_raw_mem_alloc(round_up(bytes, dr_page_size()), DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
  if (pages == NULL) {
    dr_fprintf(STDERR, "fencepost: recorder: out of memory\n");
    dr_abort();
  }
  return pages;
}

void pages_free(void *pages, size_t bytes) {
  dr_raw_mem_free(pages, round_up(bytes, dr_page_size()));
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
