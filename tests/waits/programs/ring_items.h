// SPDX-License-Identifier: Apache-2.0
//
// Items that go through a bounded ring from one thread to another. In the first half of them the
// producer is slow and the ring empty, in the second the consumer is slow and the ring full. The
// program gives `wait_for_place` and so on.
#ifndef RING_ITEMS_H
#define RING_ITEMS_H

#define THREADS 2
#include "rounds.h"

enum { ITEMS = 2 * ROUNDS, PLACES = 4 };

static unsigned places[PLACES];

static void wait_for_place(unsigned item);
static void put(unsigned item);
static void wait_for_item(unsigned item);
static void take(unsigned item);

static unsigned producing(unsigned item) { return item < ITEMS / 2 ? LONG_WORK : SHORT_WORK; }

static unsigned consuming(unsigned item) { return item < ITEMS / 2 ? SHORT_WORK : LONG_WORK; }

static void produce(void) {
  for (unsigned item = 0; item < ITEMS; item++) {
    work(0, producing(item));
    wait_for_place(item);
    places[item % PLACES] = item;
    put(item);
  }
}

static void consume(void) {
  for (unsigned item = 0; item < ITEMS; item++) {
    wait_for_item(item);
    if (places[item % PLACES] != item)
      abort();
    take(item);
    work(1, consuming(item));
  }
}

static void run(unsigned thread) {
  if (thread == 0)
    produce();
  else
    consume();
}

// An item is put when it is made and a place is free, and taken when it was put and the one before
// it is done.
static struct path critical_path(void) {
  struct path put[ITEMS], taken[ITEMS], made = {0}, done = {0};
  for (unsigned item = 0; item < ITEMS; item++) {
    made = path_then(made, 0, producing(item));
    put[item] = item < PLACES ? made : path_later(made, taken[item - PLACES]);
    made = put[item];
    taken[item] = path_later(put[item], done);
    done = path_then(taken[item], 1, consuming(item));
  }
  return path_later(done, made);
}

#endif
