// SPDX-License-Identifier: Apache-2.0
#include "std_semaphore.h"

#include <semaphore>

namespace {
std::counting_semaphore<4> free_places(4);
std::counting_semaphore<4> items(0);
} // namespace

void std_free_places_acquire() { free_places.acquire(); }
void std_free_places_release() { free_places.release(); }
void std_items_acquire() { items.acquire(); }
void std_items_release() { items.release(); }
