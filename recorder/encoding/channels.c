/* SPDX-License-Identifier: Apache-2.0 */
#include "channels.h"

#include "arena.h"
#include "channel_key.h"
#include "process_lock.h"
#include "recording.h"
#include "region_of_interest.h"

/* Of one channel; where more are not consumed, the newest is made to stand for them. */
#define SUPPLIES_OF_CHANNEL_MAX 1024u

static struct supply_table *own_table;

struct supply_table *supply_table(void) {
  if (recording.tree != NULL)
    return &recording.area->supplies;
  if (own_table == NULL)
    own_table = pages_allocate(sizeof(*own_table));
  return own_table;
}

void supply_table_lock(void) { process_lock_take(&supply_table()->lock, recording.process); }
void supply_table_unlock(void) { process_lock_give(&supply_table()->lock); }

void supply_table_exit(void) {
  if (own_table != NULL)
    pages_free(own_table, sizeof(*own_table));
  own_table = NULL;
}

static void link_to(uint32_t *link, uint32_t place) {
  __atomic_store_n(link, place, __ATOMIC_RELEASE);
}

static struct supply *supply_at(uint32_t place) { return &supply_table()->supply[place - 1]; }

/* NULL where the table is full. */
static struct channel *channel_of(uint64_t key) {
  struct supply_table *table = supply_table();
  uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) % CHANNELS_MAX;
  while (table->channel[at].key != 0 && table->channel[at].key != key)
    at = (at + 1) % CHANNELS_MAX;
  struct channel *channel = &table->channel[at];
  if (channel->key == 0) {
    if (table->channels_met >= CHANNELS_MAX / 2)
      return NULL;
    channel->number = ++table->channels_met;
    __atomic_store_n(&channel->key, key, __ATOMIC_RELEASE);
  }
  return channel;
}

uint64_t channels_number(uint64_t key) {
  supply_table_lock();
  const struct channel *channel = channel_of(key);
  uint64_t number = channel == NULL ? 0 : channel->number;
  supply_table_unlock();
  return number;
}

void channels_set_signals(uint64_t key) {
  supply_table_lock();
  struct channel *channel = key == 0 ? NULL : channel_of(key);
  if (channel != NULL)
    channel->has_signals = 1;
  supply_table_unlock();
}

bool channels_have_signals(uint64_t key) {
  supply_table_lock();
  const struct channel *channel = channel_of(key);
  bool have = channel != NULL && channel->has_signals;
  supply_table_unlock();
  return have;
}

bool channels_have_peer(uint64_t key) {
  supply_table_lock();
  const struct channel *channel = channel_of(key);
  bool have = channel != NULL && channel->peer != 0;
  supply_table_unlock();
  return have;
}

/* 0 where there is none left. */
static uint32_t allocate_supply(void) {
  struct supply_table *table = supply_table();
  uint32_t place = table->free;
  if (place != 0)
    link_to(&table->free, supply_at(place)->next);
  else if (table->used < SUPPLIES_MAX)
    place = ++table->used;
  return place;
}

static void append(struct channel *channel, uint32_t place) {
  if (channel->first == 0)
    link_to(&channel->last, place);
  link_to(channel->first == 0 ? &channel->first : &supply_at(channel->last)->next, place);
  link_to(&channel->last, place);
  channel->count++;
}

static void remove_first(struct channel *channel) {
  uint32_t place = channel->first;
  struct supply *supply = supply_at(place);
  link_to(&channel->first, supply->next);
  channel->count--;
  supply->next = supply_table()->free;
  link_to(&supply_table()->free, place);
}

static bool add(struct channel *channel, uint64_t clock) {
  uint32_t place = channel->count < SUPPLIES_OF_CHANNEL_MAX ? allocate_supply() : 0;
  if (place == 0 && channel->first == 0)
    return false;
  struct supply *supply = supply_at(place != 0 ? place : channel->last);
  supply->end = channel->supplied;
  supply->clock = clock;
  if (place == 0)
    return true;
  supply->next = 0;
  append(channel, place);
  return true;
}

static bool has_amounts(uint64_t key) {
  return channel_kind(key) == CHANNEL_OF_BYTES || channel_kind(key) == CHANNEL_OF_SEMAPHORE;
}

struct transfer_edge channels_give(uint64_t key, uint64_t bytes) {
  struct transfer_edge edge = {.clock = clock_advance()};
  supply_table_lock();
  struct channel *channel = channel_of(key);
  if (channel != NULL && channel->peer != 0)
    channel = channel_of(channel->peer);
  if (channel != NULL) {
    channel->supplied += has_amounts(key) ? bytes : 1;
    if (add(channel, region_is_outside ? 0 : edge.clock))
      edge.channel = channel->number;
  }
  supply_table_unlock();
  return edge;
}

struct transfer_edge channels_end(uint64_t key, int32_t process) {
  struct transfer_edge edge = {.clock = process > 0 ? 0 : clock_advance()};
  supply_table_lock();
  struct channel *channel = channel_of(key);
  if (channel != NULL && channel->peer != 0)
    channel = channel_of(channel->peer);
  if (channel != NULL) {
    channel->end_clock = region_is_outside ? 0 : edge.clock;
    channel->end_process = region_is_outside ? 0 : process;
    edge.channel = channel->number;
  }
  supply_table_unlock();
  return edge;
}

struct channel_end channels_look_at_end(uint64_t key) {
  struct channel_end end = {{0}, 0};
  supply_table_lock();
  const struct channel *channel = channel_of(key);
  if (channel != NULL) {
    end.edge.channel = channel->number;
    end.edge.clock = region_of_interest_clock(channel->end_clock);
    end.process = channel->end_process;
  }
  supply_table_unlock();
  return end;
}

static uint64_t amount(const struct channel *channel, uint64_t bytes) {
  switch (channel_kind(channel->key)) {
  case CHANNEL_OF_BYTES:
  case CHANNEL_OF_SEMAPHORE:
    return bytes;
  case CHANNEL_OF_COUNTS:
  case CHANNEL_OF_LOCKS:
    return channel->supplied - channel->consumed;
  default:
    return 1;
  }
}

static uint64_t look_at(const struct channel *channel, uint64_t bytes) {
  uint64_t clock = 0, end = channel->consumed + amount(channel, bytes);
  for (uint32_t at = channel->first; at != 0; at = supply_at(at)->next) {
    clock = supply_at(at)->clock;
    if (supply_at(at)->end >= end)
      break;
  }
  return clock;
}

static void forget_consumed(struct channel *channel) {
  while (channel->first != 0 && supply_at(channel->first)->end <= channel->consumed)
    remove_first(channel);
}

static struct transfer_edge transfer(uint64_t key, uint64_t bytes, bool takes) {
  struct transfer_edge edge = {0};
  supply_table_lock();
  struct channel *channel = channel_of(key);
  if (channel != NULL) {
    edge.channel = channel->number;
    edge.clock = region_of_interest_clock(look_at(channel, bytes));
    channel->consumed += takes ? amount(channel, bytes) : 0;
    /* What else was there came from outside. */
    if (channel->consumed > channel->supplied)
      channel->consumed = channel->supplied;
    forget_consumed(channel);
  }
  supply_table_unlock();
  return edge;
}

struct transfer_edge channels_take(uint64_t key, uint64_t bytes) {
  return transfer(key, bytes, true);
}

struct transfer_edge channels_look(uint64_t key, uint64_t bytes) {
  return transfer(key, bytes, false);
}

/* What has been written to a channel, as what another one held. */
static void hold_what_was_in(struct channel *channel, const struct channel *other) {
  channel->number = other->number;
  channel->end_clock = other->end_clock;
  channel->end_process = other->end_process;
  channel->supplied = other->supplied;
  channel->first = other->first;
  channel->last = other->last;
  channel->count = other->count;
}

void channels_connect(uint64_t one_key, uint64_t other_key) {
  if (one_key == 0 || other_key == 0)
    return;
  supply_table_lock();
  struct channel *one = channel_of(one_key), *other = channel_of(other_key);
  if (one != NULL && other != NULL && one->peer == 0 && other->peer == 0) {
    /* What was written to an end while the other one was not known is the other one's. */
    struct channel before = *one;
    hold_what_was_in(one, other);
    hold_what_was_in(other, &before);
    one->peer = other_key;
    other->peer = one_key;
  }
  supply_table_unlock();
}
