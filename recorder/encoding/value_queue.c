/* SPDX-License-Identifier: Apache-2.0 */
#include "value_queue.h"

#include "arena.h"

#include <string.h>

/* One execution's values always fit: its last instruction may write VALUE_BYTES_MAX, the others a
 * saved processor state each at most. */
#define QUEUE_BYTES (4u << 20)

void value_queue_init(struct value_queue *queue) {
  memset(queue, 0, sizeof(*queue));
  queue->memory = queue->front = queue->end = pages_allocate(QUEUE_BYTES);
}

void value_queue_free(struct value_queue *queue) {
  if (queue->memory != NULL)
    pages_free(queue->memory, QUEUE_BYTES);
}

static size_t value_size(uint32_t bytes) {
  return sizeof(struct value) + ((size_t)bytes + 7) / 8 * 8;
}

bool value_queue_has_room(const struct value_queue *queue, uint32_t bytes) {
  size_t used = (size_t)(queue->end - queue->front);
  return used + value_size(bytes) <= QUEUE_BYTES;
}

uint8_t *value_queue_add(struct value_queue *queue, uint64_t *values_word, uint32_t write,
                         uint32_t bytes) {
  size_t size = value_size(bytes), used = (size_t)(queue->end - queue->front);
  if ((size_t)(queue->memory + QUEUE_BYTES - queue->end) < size || used == 0) {
    memmove(queue->memory, queue->front, used);
    queue->front = queue->memory;
    queue->end = queue->front + used;
  }
  struct value *value = (struct value *)(void *)queue->end;
  value->bytes = bytes;
  value->write = write;
  queue->end += size;
  if (*values_word == 0)
    *values_word = queue->next_number << VALUES_COUNT_BITS;
  ++*values_word;
  queue->next_number++;
  return value->data;
}

const struct value *value_queue_take(struct value_queue *queue, uint64_t number) {
  const struct value *value;
  do {
    value = (const struct value *)(const void *)queue->front;
    queue->front += value_size(value->bytes);
  } while (queue->front_number++ != number);
  return value;
}
