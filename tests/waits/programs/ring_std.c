// SPDX-License-Identifier: Apache-2.0
//
// The ring with counting semaphores of C++20 (std_semaphore.cpp).
#include "ring_items.h"
#include "std_semaphore.h"

_Static_assert(PLACES == 4, "as many as the semaphore begins with");

static void wait_for_place(unsigned item) {
  (void)item;
  std_free_places_acquire();
}

static void put(unsigned item) {
  (void)item;
  std_items_release();
}

static void wait_for_item(unsigned item) {
  (void)item;
  std_items_acquire();
}

static void take(unsigned item) {
  (void)item;
  std_free_places_release();
}
