/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include "code_table.h"
#include "kernel_writes.h"
#include "platform.h"
#include "record_format.h"
#include "selected_memory.h"
#include "value_queue.h"

#include <string.h>

static void keep_for_call(struct thread *thread, uint64_t address, uint64_t bytes) {
  for (uint32_t i = 0; i < thread->call_writes; i++) {
    if (thread->call_write[i].address == address && thread->call_write[i].bytes >= bytes)
      return;
  }
  if (thread->call_writes < CALL_WRITES_MAX)
    thread->call_write[thread->call_writes++] = (struct call_write){address, bytes};
}

void values_send_of_call(struct thread *thread) {
  uint32_t count = thread->call_writes;
  thread->call_writes = 0;
  for (uint32_t i = 0; i < count; i++)
    kernel_writes_send(thread, thread->call_write[i].address, thread->call_write[i].bytes);
}

/* Keeps the `bytes` at `from` as those that the write left at `address`. */
static void keep(struct thread *thread, const struct block *block, uint32_t write, uint64_t address,
                 const void *from, uint32_t bytes) {
  uint64_t start, end;
  if (bytes == 0 || !selected_memory_find(address, address + bytes, &start, &end))
    return;
  if (thread->call_depth > 0) {
    keep_for_call(thread, address, bytes);
    return;
  }
  if (!value_queue_has_room(&thread->values, bytes))
    thread_drain_before(thread, *thread->position - block->raw_words);
  uint64_t *word = *thread->position - block->raw_words + VALUES_WORD;
  uint8_t *data = value_queue_add(&thread->values, word, write, bytes);
  size_t read;
  if (!platform_read(from, bytes, data, &read)) /* A mask let it reach over what is mapped. */
    memset(data + read, 0, bytes - read);
}

static uint64_t slot_value(const struct thread *thread, const struct block *block, uint32_t slot) {
  const uint64_t *words = *thread->position - block->raw_words;
  return words[block->slot[slot].raw] + (uint64_t)block->slot[slot].displacement;
}

/* A repeated string instruction ends its block: the execution is complete. */
static void keep_string(struct thread *thread, const struct block *block, uint32_t slot,
                        uint32_t write) {
  uint64_t from = slot_value(thread, block, slot), to = slot_value(thread, block, slot + 1);
  uint64_t element = block->slot[slot].bytes;
  uint64_t start = from < to ? from : to + element, bytes = from < to ? to - from : from - to;
  write_order_wrote(thread, block, start, bytes);
  if (bytes <= VALUE_BYTES_MAX)
    keep(thread, block, write, start, (const void *)(uintptr_t)start, (uint32_t)bytes);
  else if (thread->call_depth > 0)
    keep_for_call(thread, start, bytes);
  else
    kernel_writes_send(thread, start, bytes);
}

static void keep_writes(struct thread *thread, const struct write_place *place) {
  const struct block *block = code_table_get(place->block);
  uint32_t write = place->write, first = place->slot;
  uint16_t instruction = block->slot[first].instruction;
  for (uint32_t i = first; i < block->slots && block->slot[i].instruction == instruction; i++) {
    const struct slot *slot = &block->slot[i];
    if (slot->kind == SLOT_STRING_DESTINATION) {
      keep_string(thread, block, i, write);
      return;
    }
    if (!slot_writes(slot))
      continue;
    uint64_t address = slot_value(thread, block, i);
    if (slot->kind != SLOT_SCATTER || address != 0)
      keep(thread, block, write, address, (const void *)(uintptr_t)address, slot->bytes);
    write++;
  }
}

void values_after_write(struct thread *thread, const struct write_place *place, bool happened) {
  write_order_end(thread);
  if (thread->is_recorded && happened)
    keep_writes(thread, place);
}

void values_before_call(struct thread *thread, const struct write_place *place,
                        uint64_t return_address) {
  if (!thread->is_recorded)
    return;
  const struct block *block = code_table_get(place->block);
  keep(thread, block, place->write, slot_value(thread, block, place->slot), &return_address,
       block->slot[place->slot].bytes);
}

bool values_find_write(uint32_t id, uint32_t instruction, bool writes_string,
                       struct write_place *place) {
  const struct block *block = code_table_get(id);
  uint32_t write = 0;
  for (uint32_t i = 0; i < block->slots; i++) {
    const struct slot *slot = &block->slot[i];
    if (slot->instruction == instruction) {
      bool is_string = slot->kind == SLOT_STRING_DESTINATION;
      if (is_string ? writes_string : slot_writes(slot)) {
        *place = (struct write_place){.block = id, .slot = (uint16_t)i, .write = (uint16_t)write};
        return true;
      }
    }
    if (slot->kind == SLOT_STRING_DESTINATION)
      i++;
    if (slot_writes(slot))
      write++;
  }
  return false;
}
