/* SPDX-License-Identifier: Apache-2.0 */
#include "code_table.h"

#include "arena.h"
#include "frame.h"
#include "platform.h"
#include "record_format.h"
#include "recording.h"
#include "varint.h"

#include <string.h>

#define BLOCKS_PER_CHUNK 4096u
#define CODE_FRAME_BYTES_MAX (4u << 20)
/* Blocks of a later image get code versions of their own: what its addresses held before the exec
 * is no longer known here. */
#define CODE_VERSIONS_PER_IMAGE 0x10000u

static struct {
  void *lock;       /* guards everything but the reads of `chunks` */
  void *write_lock; /* makes the order of CODE frames that of the ids */
  struct arena arena;
  struct block *chunks[RECORD_BLOCKS_MAX / BLOCKS_PER_CHUNK + 1];
  uint32_t first_id;   /* of this image */
  uint32_t ids_before; /* ids of images before it that this record does not have */
  uint32_t next_id;
  uint32_t *hash; /* open addressing; ids, 0 is empty */
  uint32_t hash_capacity;
  uint32_t *newest; /* likewise: the newest block at an address */
} table;

static uint64_t hash_bytes(uint64_t seed, const uint8_t *bytes, size_t count) {
  uint64_t hash = seed * 0x9e3779b97f4a7c15ull ^ count;
  for (size_t i = 0; i < count; i++)
    hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash ^ hash >> 29;
}

static uint64_t hash_address(uint64_t address) {
  address *= 0x9e3779b97f4a7c15ull;
  return address ^ address >> 32;
}

const struct block *code_table_get(uint32_t id) {
  return &table.chunks[id / BLOCKS_PER_CHUNK][id % BLOCKS_PER_CHUNK];
}

static void hash_insert(uint32_t *hash, uint32_t capacity, uint64_t key, uint32_t id) {
  uint32_t at = (uint32_t)key & (capacity - 1);
  while (hash[at] != 0)
    at = (at + 1) & (capacity - 1);
  hash[at] = id;
}

/* The place of the newest block at `address` in `table.newest`, or an empty one. */
static uint32_t *newest_at(uint64_t address) {
  uint32_t at = (uint32_t)hash_address(address) & (table.hash_capacity - 1);
  while (table.newest[at] != 0 && code_table_get(table.newest[at])->address != address)
    at = (at + 1) & (table.hash_capacity - 1);
  return &table.newest[at];
}

static void grow(uint32_t capacity) {
  uint32_t *old_hash = table.hash, *old_newest = table.newest;
  uint32_t old_capacity = table.hash_capacity;
  table.hash = pages_allocate(capacity * sizeof(uint32_t));
  table.newest = pages_allocate(capacity * sizeof(uint32_t));
  table.hash_capacity = capacity;
  for (uint32_t i = 0; i < old_capacity; i++) {
    if (old_hash[i] != 0) {
      const struct block *block = code_table_get(old_hash[i]);
      hash_insert(table.hash, capacity, hash_bytes(block->address, block->code, block->code_bytes),
                  block->id);
    }
    if (old_newest[i] != 0)
      *newest_at(code_table_get(old_newest[i])->address) = old_newest[i];
  }
  if (old_capacity != 0) {
    pages_free(old_hash, old_capacity * sizeof(uint32_t));
    pages_free(old_newest, old_capacity * sizeof(uint32_t));
  }
}

void code_table_init(void) {
  table.lock = platform_mutex_create();
  table.write_lock = platform_mutex_create();
  table.first_id = table.next_id = recording.control->blocks + 1;
  grow(1u << 16);
}

void code_table_exit(void) {
  for (size_t i = 0; i < sizeof(table.chunks) / sizeof(table.chunks[0]); i++) {
    if (table.chunks[i] != NULL)
      pages_free(table.chunks[i], BLOCKS_PER_CHUNK * sizeof(struct block));
  }
  pages_free(table.hash, table.hash_capacity * sizeof(uint32_t));
  pages_free(table.newest, table.hash_capacity * sizeof(uint32_t));
  arena_free(&table.arena);
  platform_mutex_destroy(table.lock);
  platform_mutex_destroy(table.write_lock);
}

uint32_t code_table_record_id(uint32_t id) { return id - table.ids_before; }

static void renew_locks(void) {
  table.lock = platform_mutex_create();
  table.write_lock = platform_mutex_create();
}

void code_table_after_fork(void) {
  table.ids_before = table.first_id - 1;
  renew_locks();
}

bool block_word_is_reached(const struct block *block, uint32_t word, uint32_t instructions) {
  for (uint32_t i = 0; i < block->slots; i++) {
    if (block->slot[i].raw == word && block->slot[i].instruction < instructions)
      return true;
  }
  return false;
}

uint16_t block_writes(const struct block *block) {
  uint16_t writes = 0;
  for (uint32_t i = 0; i < block->slots; i++) {
    writes += slot_writes(&block->slot[i]);
    if (block->slot[i].kind == SLOT_STRING_DESTINATION)
      i++;
  }
  return writes;
}

static void *copy(const void *from, size_t bytes) {
  return memcpy(arena_allocate(&table.arena, bytes), from, bytes);
}

static uint32_t add(const struct block *block, uint64_t hash) {
  uint32_t id = table.next_id;
  if (id > RECORD_BLOCKS_MAX) {
    recording_stop(STOP_TOO_MANY_BLOCKS);
    return 0;
  }
  struct block **chunk = &table.chunks[id / BLOCKS_PER_CHUNK];
  if (*chunk == NULL)
    *chunk = pages_allocate(BLOCKS_PER_CHUNK * sizeof(struct block));
  struct block *added = &(*chunk)[id % BLOCKS_PER_CHUNK];
  *added = *block;
  added->id = id;
  added->lengths = copy(block->lengths, block->instructions);
  added->code = copy(block->code, block->code_bytes);
  struct slot *slots = copy(block->slot, block->slots * sizeof(struct slot));
  for (uint32_t i = 0; i < block->slots; i++) {
    if (slots[i].raw == 0)
      slots[i].displacement -= id;
  }
  added->slot = slots;
  uint32_t *newest = newest_at(block->address);
  added->code_version = *newest == 0 ? (recording.image - 1) * CODE_VERSIONS_PER_IMAGE
                                     : code_table_get(*newest)->code_version + 1;
  *newest = id;
  hash_insert(table.hash, table.hash_capacity, hash, id);
  __atomic_store_n(&table.next_id, id + 1, __ATOMIC_RELEASE);
  return id;
}

uint32_t code_table_intern(const struct block *block) {
  uint64_t hash = hash_bytes(block->address, block->code, block->code_bytes);
  platform_mutex_lock(table.lock);
  uint32_t at = (uint32_t)hash & (table.hash_capacity - 1);
  uint32_t id;
  while ((id = table.hash[at]) != 0) {
    const struct block *known = code_table_get(id);
    if (known->address == block->address && known->code_bytes == block->code_bytes &&
        known->instructions == block->instructions &&
        memcmp(known->code, block->code, block->code_bytes) == 0)
      break;
    at = (at + 1) & (table.hash_capacity - 1);
  }
  if (id == 0) {
    if ((table.next_id - table.first_id + 1) * 2 > table.hash_capacity)
      grow(table.hash_capacity * 2);
    id = add(block, hash);
  }
  platform_mutex_unlock(table.lock);
  return id;
}

static size_t description_bytes_max(const struct block *block) {
  return 8 + 3 * VARINT_BYTES_MAX + block->instructions + block->code_bytes +
         (size_t)block->slots * 8;
}

static uint8_t *describe(uint8_t *out, const struct block *block) {
  memcpy(out, &block->address, 8);
  out = varint_write(out + 8, block->code_version);
  out = varint_write(out, block->instructions);
  memcpy(out, block->lengths, block->instructions);
  out += block->instructions;
  memcpy(out, block->code, block->code_bytes);
  out = varint_write(out + block->code_bytes, block->slots);
  for (uint32_t i = 0; i < block->slots; i++) {
    out = varint_write(out, block->slot[i].instruction);
    *out++ = block->slot[i].kind;
    out = varint_write(out, block->slot[i].bytes);
  }
  return out;
}

/* Writes one CODE frame that starts with block `first`; the id behind its last block. */
static uint32_t write_frame(uint32_t first, uint32_t end) {
  struct process_control *control = recording.control;
  uint32_t last = first;
  size_t bytes_max = 0;
  while (last < end && bytes_max < CODE_FRAME_BYTES_MAX)
    bytes_max += description_bytes_max(code_table_get(last++));
  struct frame_buffer *buffer = frame_buffer_take(bytes_max);
  uint8_t *out = buffer->payload;
  for (uint32_t id = first; id < last; id++)
    out = describe(out, code_table_get(id));
  buffer->payload_bytes = (uint32_t)(out - buffer->payload);
  struct frame_description frame = {.kind = FRAME_CODE,
                                    .sequence = control->code_sequence,
                                    .instructions = last - first,
                                    .position = code_table_record_id(first)};
  if (control->code_bytes + buffer->payload_bytes > RECORD_CODE_BYTES_MAX)
    recording_stop(STOP_TOO_MANY_BLOCKS);
  frame_append(buffer, &frame);
  frame_buffer_give_back(buffer);
  control->code_bytes += frame.raw_bytes;
  control->blocks = code_table_record_id(last) - 1;
  control->code_sequence++;
  return last;
}

void code_table_write_pending(void) {
  if (recording.is_stopped)
    return;
  uint32_t end = __atomic_load_n(&table.next_id, __ATOMIC_ACQUIRE);
  platform_mutex_lock(table.write_lock);
  uint32_t first = table.ids_before + recording.control->blocks + 1;
  while (first < end)
    first = write_frame(first, end);
  platform_mutex_unlock(table.write_lock);
}

void code_table_continue_killed(void) {
  struct process_control *control = recording.control;
  renew_locks();
  uint32_t blocks = frame_last_blocks(control->code_sequence);
  if (blocks == 0)
    return;
  control->blocks = blocks;
  control->code_sequence++;
}
