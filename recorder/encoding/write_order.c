/* SPDX-License-Identifier: Apache-2.0 */
#include "write_order.h"

#include "arena.h"
#include "code_table.h"
#include "fields.h"
#include "platform.h"
#include "raw_words.h"
#include "record_format.h"
#include "selected_memory.h"
#include "thread.h"

#include <string.h>

#define TABLE_BITS 20u
#define WRITES_BITS 43u
#define WRITES_MASK ((1ull << WRITES_BITS) - 1)
#define LOCKS 64u
/* Whoever holds a lock may have ended with its process. */
#define LOCK_YIELDS_MAX 1000u
#define ORDER_WORDS_MAX (1 + (2 * VARINT_BYTES_MAX + 7) / 8)

bool write_order_is_kept;

static struct {
  uint64_t
      *last; /* by line, the number of its last writer + 1, and how many writes that had made */
  uint32_t lock[LOCKS];
} table;

static uint32_t place_of(uint64_t line) {
  return (uint32_t)((line * 0x9e3779b97f4a7c15ull) >> (64 - TABLE_BITS));
}

void write_order_init(struct thread *thread) { thread->order.walked = thread->buffer; }

void write_order_free(struct thread *thread) {
  struct write_order *order = &thread->order;
  write_order_end(thread);
  if (order->wanted_capacity != 0)
    platform_free(order->wanted, order->wanted_capacity * sizeof(*order->wanted));
  order->wanted_capacity = order->wanted_count = 0;
}

void write_order_continue_in_child(struct thread *thread) {
  write_order_free(thread);
  memset(&thread->order, 0, sizeof(thread->order));
  write_order_init(thread);
  if (table.last != NULL) {
    pages_free(table.last, sizeof(uint64_t) << TABLE_BITS);
    table.last = pages_allocate(sizeof(uint64_t) << TABLE_BITS);
  }
  memset(table.lock, 0, sizeof(table.lock));
}

void write_order_begin(void) {
  if (!values_are_recorded || write_order_is_kept)
    return;
  table.last = pages_allocate(sizeof(uint64_t) << TABLE_BITS);
  write_order_is_kept = true;
}

/* The next event depends on these writes. */
static void want(struct thread *thread, uint64_t entry) {
  struct write_order *order = &thread->order;
  uint32_t of = (uint32_t)(entry >> WRITES_BITS) - 1;
  uint64_t writes = entry & WRITES_MASK;
  if (entry == 0 || of == thread->id)
    return;
  const struct dependency *known = &order->known[of % KNOWN_DEPENDENCIES];
  if (known->thread == of && known->writes >= writes)
    return;
  for (uint32_t i = 0; i < order->wanted_count; i++) {
    if (order->wanted[i].thread == of) {
      if (order->wanted[i].writes < writes)
        order->wanted[i].writes = writes;
      return;
    }
  }
  if (order->wanted_count == order->wanted_capacity) {
    uint32_t capacity = order->wanted_capacity == 0 ? 16 : 2 * order->wanted_capacity;
    struct dependency *wanted = platform_allocate(capacity * sizeof(*wanted));
    if (order->wanted_count != 0) {
      memcpy(wanted, order->wanted, order->wanted_count * sizeof(*wanted));
      platform_free(order->wanted, order->wanted_count * sizeof(*wanted));
    }
    order->wanted = wanted;
    order->wanted_capacity = capacity;
  }
  order->wanted[order->wanted_count++] = (struct dependency){of, writes};
}

static void read_lines(struct thread *thread, uint64_t address, uint64_t bytes) {
  for (uint64_t line = address / CACHE_LINE_BYTES; line * CACHE_LINE_BYTES < address + bytes;
       line++)
    want(thread, __atomic_load_n(&table.last[place_of(line)], __ATOMIC_ACQUIRE));
}

static void announce(struct thread *thread, uint64_t address, uint64_t bytes) {
  uint64_t own = (uint64_t)(thread->id + 1) << WRITES_BITS | (thread->order.writes + 1);
  for (uint64_t line = address / CACHE_LINE_BYTES; line * CACHE_LINE_BYTES < address + bytes;
       line++)
    want(thread, __atomic_exchange_n(&table.last[place_of(line)], own, __ATOMIC_SEQ_CST));
}

static uint64_t slot_value(const struct slot *slot, const uint64_t *words) {
  return words[slot->raw] + (uint64_t)slot->displacement;
}

/* What a slot of an execution does to its bytes. Where threads take turns, a write enters itself
 * here; else it has done so before it happened. */
static void touch(struct thread *thread, const struct slot *slot, uint64_t address,
                  uint64_t bytes) {
  if (baton_is_passed && slot_writes(slot))
    announce(thread, address, bytes);
  else if (slot->kind != SLOT_STORE && slot->kind != SLOT_SCATTER &&
           (slot->kind != SLOT_FLUSH || baton_is_passed))
    read_lines(thread, address, bytes);
}

/* Looks at the first `instructions` instructions of an execution. */
static void look_at(struct thread *thread, const struct block *block, const uint64_t *words,
                    uint32_t instructions) {
  for (uint32_t i = 0; i < block->slots && block->slot[i].instruction < instructions; i++) {
    const struct slot *slot = &block->slot[i];
    uint64_t address = slot_value(slot, words);
    if (slot->kind == SLOT_STRING_SOURCE || slot->kind == SLOT_STRING_DESTINATION) {
      uint64_t after = slot_value(&block->slot[++i], words);
      uint64_t low = address < after ? address : after, high = address < after ? after : address;
      touch(thread, slot, low, high == low ? 0 : high - low + slot->bytes);
    } else if (slot->kind == SLOT_FLUSH) {
      touch(thread, slot, address, 1);
    } else if (slot_writes(slot) || slot->kind == SLOT_LOAD || slot->kind == SLOT_GATHER) {
      if (address != 0)
        touch(thread, slot, address, slot->bytes);
    }
  }
}

const uint64_t *write_order_look(struct thread *thread, const uint64_t *end) {
  struct write_order *order = &thread->order;
  const uint64_t *at = order->walked;
  while (at < end) {
    if (word_is_marker(*at)) {
      at += marker_words(*at);
      continue;
    }
    const struct block *block = code_table_get((uint32_t)*at);
    if (at + block->raw_words > end)
      break;
    if (write_order_is_kept && (baton_is_passed || (block->flags & BLOCK_READS) != 0))
      look_at(thread, block, at, raw_words_executed(at, end));
    if (baton_is_passed && order->wanted_count != 0) {
      order->walked = at; /* and again when it is told */
      return at;
    }
    at += block->raw_words;
    order->writes += (block->flags & BLOCK_STORES) != 0;
  }
  order->walked = at;
  return end;
}

static void become_known(struct thread *thread, const struct dependency *dependency) {
  thread->order.known[dependency->thread % KNOWN_DEPENDENCIES] = *dependency;
}

void write_order_tell(struct thread *thread) {
  struct write_order *order = &thread->order;
  for (uint32_t i = 0; i < order->wanted_count; i++) {
    uint8_t fields[2 * VARINT_BYTES_MAX], *end = varint_write(fields, order->wanted[i].thread);
    end = varint_write(end, order->wanted[i].writes);
    encoder_make_room(&thread->encoder);
    trace_frame_event(&thread->encoder.frame, EVENT_ORDER, false, 0, fields,
                      (uint32_t)(end - fields));
    become_known(thread, &order->wanted[i]);
  }
  order->wanted_count = 0;
}

void write_order_moved(struct thread *thread, const uint64_t *kept) {
  thread->order.walked = thread->buffer + (thread->order.walked - kept);
}

void write_order_send(struct thread *thread) {
  struct write_order *order = &thread->order;
  if (!values_are_recorded || baton_is_passed || thread->call_depth > 0 || !thread->is_recorded)
    return;
  write_order_look(thread, *thread->position);
  for (uint32_t i = 0; i < order->wanted_count; i++) {
    struct fields fields;
    fields_begin(&fields);
    fields_number(&fields, order->wanted[i].thread);
    fields_number(&fields, order->wanted[i].writes);
    fields_send(&fields, thread, EVENT_ORDER);
    become_known(thread, &order->wanted[i]);
  }
  order->wanted_count = 0;
}

/* Puts what is wanted before the execution that goes on at the buffer's end. */
static void insert_wanted(struct thread *thread, const struct block *block) {
  struct write_order *order = &thread->order;
  size_t room = (size_t)order->wanted_count * ORDER_WORDS_MAX;
  if (*thread->position + room > thread->guard)
    thread_drain_before(thread, *thread->position - block->raw_words);
  uint64_t markers[ORDER_WORDS_MAX];
  for (uint32_t i = 0; i < order->wanted_count; i++) {
    const struct dependency *wanted = &order->wanted[i];
    memset(markers, 0, sizeof(markers));
    uint8_t *fields = (uint8_t *)&markers[1], *end = varint_write(fields, wanted->thread);
    end = varint_write(end, wanted->writes);
    markers[0] = marker_word(EVENT_ORDER, false, (uint32_t)(end - fields));
    size_t words = marker_words(markers[0]);
    uint64_t *start = *thread->position - block->raw_words;
    memmove(start + words, start, block->raw_words * sizeof(uint64_t));
    memcpy(start, markers, words * sizeof(uint64_t));
    *thread->position += words;
    become_known(thread, wanted);
  }
  order->walked = *thread->position - block->raw_words;
  order->wanted_count = 0;
}

static void take_lock(struct thread *thread, uint64_t address) {
  uint32_t lock = place_of(address / CACHE_LINE_BYTES) % LOCKS;
  for (uint32_t yields = 0; yields < LOCK_YIELDS_MAX; yields++) {
    if (__atomic_exchange_n(&table.lock[lock], 1, __ATOMIC_ACQUIRE) == 0) {
      thread->order.held_lock = lock + 1;
      return;
    }
    platform_yield();
  }
}

void write_order_end(struct thread *thread) {
  if (thread->order.held_lock == 0)
    return;
  __atomic_store_n(&table.lock[thread->order.held_lock - 1], 0, __ATOMIC_RELEASE);
  thread->order.held_lock = 0;
}

/* What several threads store to selected memory is kept in the order in which it came there. */
void write_order_before(struct thread *thread, uint32_t id, uint32_t instruction,
                        bool may_hold_lock) {
  if (!thread->is_recorded || thread->call_depth > 0)
    return;
  const struct block *block = code_table_get(id);
  const uint64_t *words = *thread->position - block->raw_words;
  write_order_look(thread, words);
  look_at(thread, block, words, instruction);
  for (uint32_t i = 0; i < block->slots; i++) {
    const struct slot *slot = &block->slot[i];
    uint64_t address = slot_value(slot, words), start, end;
    if (slot->instruction != instruction)
      continue;
    if (slot->kind == SLOT_STRING_DESTINATION || slot->kind == SLOT_STRING_SOURCE) {
      i++;
    } else if (slot_writes(slot) && (slot->kind != SLOT_SCATTER || address != 0)) {
      if (may_hold_lock && thread->order.held_lock == 0 &&
          selected_memory_find(address, address + slot->bytes, &start, &end))
        take_lock(thread, address);
      announce(thread, address, slot->bytes);
    } else if (slot->kind == SLOT_FLUSH) {
      read_lines(thread, address, 1);
    }
  }
  if (thread->order.wanted_count != 0)
    insert_wanted(thread, block);
}

void write_order_wrote(struct thread *thread, const struct block *block, uint64_t address,
                       uint64_t bytes) {
  if (!write_order_is_kept || thread->call_depth > 0)
    return;
  write_order_look(thread, *thread->position - block->raw_words);
  announce(thread, address, bytes);
}
