/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that a thread's writes left in selected memory, between the write and its encoding: the
 * executions in the thread's buffer of raw words say which of them are theirs. */
#ifndef VALUE_QUEUE_H
#define VALUE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

/* With --values, each execution has one raw word more, right behind the block's id: the number of
 * its first value in the thread's queue, and below that how many it has. */
#define VALUES_WORD 1u
#define VALUES_COUNT_BITS 16
#define VALUES_COUNT_MASK ((1ull << VALUES_COUNT_BITS) - 1)

/* Longer writes are not queued (values.c); only repeated string instructions make them. */
#define VALUE_BYTES_MAX 65536u

struct value {
  uint32_t bytes;
  uint32_t write; /* which of the writes of its block */
  uint8_t data[]; /* padded to 8 bytes */
};

struct value_queue {
  uint8_t *memory;
  uint8_t *front, *end;
  uint64_t front_number; /* of the value at the front */
  uint64_t next_number;
};

void value_queue_init(struct value_queue *queue);
void value_queue_free(struct value_queue *queue);

/* Whether a value of this length fits. */
bool value_queue_has_room(const struct value_queue *queue, uint32_t bytes);
/* Room for the next value's data, and its entry in the execution's values word. */
uint8_t *value_queue_add(struct value_queue *queue, uint64_t *values_word, uint32_t write,
                         uint32_t bytes);
/* Takes the value with this number, which is not before the front; what lies between belonged to
 * executions that were never encoded. Valid until the next addition. */
const struct value *value_queue_take(struct value_queue *queue, uint64_t number);

#endif
