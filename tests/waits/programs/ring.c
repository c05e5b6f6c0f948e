// SPDX-License-Identifier: Apache-2.0
//
// A bounded ring that is polled from both sides.
#include <stdatomic.h>

#include "ring_items.h"
#include "wait_while.h"

static _Alignas(LINE_BYTES) atomic_uint produced;
static _Alignas(LINE_BYTES) atomic_uint consumed;

static void wait_for_place(unsigned item) {
  WAIT_WHILE(item - atomic_load_explicit(&consumed, memory_order_acquire) == PLACES);
}

static void put(unsigned item) { atomic_store_explicit(&produced, item + 1, memory_order_release); }

static void wait_for_item(unsigned item) {
  WAIT_WHILE(atomic_load_explicit(&produced, memory_order_acquire) == item);
}

static void take(unsigned item) {
  atomic_store_explicit(&consumed, item + 1, memory_order_release);
}
