// SPDX-License-Identifier: Apache-2.0
//
// Cold pages that an accelerator compresses into a pool in its persistent memory, as zswap does
// with a device as its back end.
//
// The persistent memory has fewer frames than there are pages. A page that is accessed needs a
// frame; where none is left, the page that came longest ago has to leave it. A thread plays the
// device: it compresses that page (LZ4), writes the entry to the pool, flushes the entry from its
// cache and answers behind a barrier. Then the host publishes the entry: one store to the page's
// place, which is persisted. Only then is the frame used again. A page comes back the other way
// round: it is decompressed into a frame and persisted, its place is changed and persisted, and
// only then is the entry's room used again.
//
// Each access writes to its page and acknowledges that in a line of the page's own. Recovery
// demands of every page that it is whole in exactly one of the two places, with the contents of the
// last acknowledged write, or of the one that was under way.
#include <getopt.h>
#include <lz4.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "broken.h"
#include "cold_pages_memory.h"
#include "crash.h"
#include "options.h"
#include "persist.h"
#include "pool.h"
#include "scramble.h"

static const char usage[] =
    "cold_pages --pages FILE [-n PAGES] [-m FRAMES] [-a ACCESSES] "
    "[--flush none|clflush|clflushopt|clwb] [--pool FILE] [--crash-at N] [--check]";

static const uint64_t magic = UINT64_C(0x312d4745504c4f43); // "COLPEG-1"

// What the host asks of the device, one request at a time.
struct device {
  pthread_t thread;
  sem_t asked, answered;
  enum flush flush;
  enum request { COMPRESS, STORE, STOP } request;
  const unsigned char *page; // to compress
  unsigned char *entry;      // where the result is to be stored
  uint64_t bytes;            // of the result
  unsigned char result[2 * PAGE];
};

struct host {
  struct memory memory;
  struct device device;
  uint64_t next_victim;
  struct {
    uint64_t page;
    place_word place; // NOWHERE: there is none
  } unpublished;      // in some builds: a page that left its frame before its place is published
};

// 16 bytes at a time; the compiler makes no library call of it.
static void copy_lines(void *to, const void *from, uint64_t bytes) {
  typedef uint64_t pair __attribute__((vector_size(16), aligned(1), may_alias));
  for (uint64_t at = 0; at < bytes; at += sizeof(pair))
    *(volatile pair *)((char *)to + at) = *(const pair *)((const char *)from + at);
}

// The device's stores lie in its cache until it flushes them; the fence is its barrier.
static void store_entry(struct device *device) {
  copy_lines(device->entry, device->result, device->bytes);
  if (BROKEN != ENTRY_NOT_FLUSHED)
    flush_range(device->flush, device->entry, device->bytes);
  fence(device->flush);
}

static void compress(struct device *device) {
  int bytes = LZ4_compress_default((const char *)device->page, (char *)device->result, PAGE,
                                   sizeof device->result);
  device->bytes = bytes > 0 && bytes < PAGE ? (uint64_t)bytes : PAGE;
  if (device->bytes == PAGE)
    memcpy(device->result, device->page, PAGE);
}

static void *play_device(void *argument) {
  struct device *device = argument;
  for (;;) {
    while (sem_wait(&device->asked) != 0)
      ; // interrupted by a signal
    if (device->request == STOP)
      return NULL;
    if (device->request == COMPRESS)
      compress(device);
    else
      store_entry(device);
    sem_post(&device->answered);
  }
}

static void ask(struct device *device, enum request request) {
  device->request = request;
  sem_post(&device->asked);
  while (request != STOP && sem_wait(&device->answered) != 0)
    ; // interrupted by a signal
}

static void publish(const struct memory *memory, uint64_t page, place_word place) {
  *(volatile place_word *)&memory->places[page].word = place;
  persist(memory->flush, &memory->places[page], sizeof memory->places[page]);
  crash_point();
}

// The first of so many free units in a row; the number of units if there are none.
static uint64_t free_units(const struct memory *memory, uint64_t bytes) {
  uint64_t run = 0;
  for (uint64_t unit = 0; unit < memory->units; unit++) {
    run = memory->is_used[unit] ? 0 : run + 1;
    if (run == units_of(bytes))
      return unit + 1 - run;
  }
  return memory->units;
}

// Compresses a page into the pool; false if there is no room for it.
static bool reclaim(struct host *host, uint64_t page, uint64_t frame) {
  struct memory *memory = &host->memory;
  struct device *device = &host->device;
  device->page = memory->in[frame];
  ask(device, COMPRESS);
  uint64_t unit = free_units(memory, device->bytes);
  if (unit == memory->units)
    return false;
  device->entry = memory->out[unit];
  use_units(memory, unit, device->bytes, true);
  place_word place = place_of(ENTRY, unit, device->bytes);
  if (BROKEN == PUBLISHED_FIRST)
    publish(memory, page, place);
  ask(device, STORE);
  crash_point();
  if (BROKEN == FREED_FIRST) {
    host->unpublished.page = page;
    host->unpublished.place = place;
  } else if (BROKEN != PUBLISHED_FIRST)
    publish(memory, page, place);
  memory->owners[frame] = 0;
  return true;
}

static uint64_t take_frame(struct host *host) {
  struct memory *memory = &host->memory;
  for (uint64_t frame = 0; frame < memory->frames; frame++)
    if (memory->owners[frame] == 0)
      return frame;
  for (uint64_t tried = 0; tried < memory->frames; tried++) {
    uint64_t frame = host->next_victim++ % memory->frames;
    if (reclaim(host, memory->owners[frame] - 1, frame))
      return frame;
  }
  fprintf(stderr, "the pool has no room for any page\n");
  exit(EXIT_FAILURE);
}

// Brings a page into a frame: from the pool, or for the first time, with its first write.
static void bring(struct host *host, uint64_t page) {
  struct memory *memory = &host->memory;
  static unsigned char whole[PAGE];
  place_word old = memory->places[page].word;
  if (old == NOWHERE)
    make_page(memory, page, 1, whole);
  else if (!load(memory, old, whole)) {
    fprintf(stderr, "page %" PRIu64 " cannot be decompressed\n", page);
    exit(EXIT_FAILURE);
  }
  if (BROKEN == REUSED_EARLY)
    use_units(memory, number_of(old), bytes_of(old), false);
  uint64_t frame = take_frame(host);
  copy_lines(memory->in[frame], whole, PAGE);
  if (BROKEN != PAGE_NOT_FLUSHED)
    persist(memory->flush, memory->in[frame], PAGE);
  crash_point();
  if (BROKEN == FREED_FIRST && host->unpublished.place != NOWHERE)
    publish(memory, host->unpublished.page, host->unpublished.place);
  host->unpublished.place = NOWHERE;
  publish(memory, page, place_of(FRAME, frame, PAGE));
  memory->owners[frame] = page + 1;
  if (BROKEN != REUSED_EARLY)
    use_units(memory, number_of(old), bytes_of(old), false);
}

static void access_page(struct host *host, uint64_t page) {
  struct memory *memory = &host->memory;
  if (kind_of(memory->places[page].word) != FRAME)
    bring(host, page);
  uint64_t *writes = (uint64_t *)memory->in[number_of(memory->places[page].word)];
  uint64_t done = memory->acks[page].writes;
  if (*writes == done) { // a page that has come for the first time is written already
    *(volatile uint64_t *)writes = done + 1;
    persist(memory->flush, writes, sizeof *writes);
    crash_point();
  }
  *(volatile uint64_t *)&memory->acks[page].writes = done + 1;
  persist(memory->flush, &memory->acks[page], sizeof memory->acks[page]);
  crash_point();
}

// Acknowledges the write that was under way when power failed.
static void recover(const struct memory *memory, const struct state *state) {
  if (state->accesses == state->acknowledged)
    return;
  struct acknowledged *last = &memory->acks[page_of(memory, state->acknowledged)];
  last->writes++;
  persist(memory->flush, last, sizeof *last);
}

static void run(struct host *host, uint64_t done) {
  struct memory *memory = &host->memory;
  host->device.flush = memory->flush;
  sem_init(&host->device.asked, 0, 0);
  sem_init(&host->device.answered, 0, 0);
  if (pthread_create(&host->device.thread, NULL, play_device, &host->device) != 0) {
    fprintf(stderr, "cannot start the device's thread\n");
    exit(EXIT_FAILURE);
  }
  for (uint64_t n = done; n < memory->accesses; n++)
    access_page(host, page_of(memory, n));
  ask(&host->device, STOP);
  pthread_join(host->device.thread, NULL);
}

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) {
    perror("no memory");
    exit(EXIT_FAILURE);
  }
  return memory;
}

static void open_pool(struct memory *memory, const char *path, bool is_scratch) {
  memory->units = memory->pages * (PAGE / UNIT);
  memory->owners = allocate(memory->frames, sizeof *memory->owners);
  memory->is_used = allocate(memory->units, sizeof *memory->is_used);
  memory->writes = allocate(memory->pages, sizeof *memory->writes);
  size_t lines_bytes = memory->pages * (sizeof *memory->places + sizeof *memory->acks);
  struct pool_header *header = pool_open(
      path, sizeof *header + lines_bytes + (memory->frames + memory->pages) * PAGE, is_scratch);
  memory->places = (struct place *)(header + 1);
  memory->acks = (struct acknowledged *)(memory->places + memory->pages);
  memory->in = (unsigned char (*)[PAGE])(memory->acks + memory->pages);
  memory->out = (unsigned char (*)[UNIT])(memory->in + memory->frames);
  const uint64_t parameters[POOL_PARAMETERS] = {memory->pages, memory->frames, memory->accesses};
  if (pool_is_formatted(header, path, magic, parameters))
    return;
  // All zeros: every page is nowhere yet.
  memset(memory->places, 0, lines_bytes);
  persist(memory->flush, memory->places, lines_bytes);
  pool_finish_format(header, magic, parameters, memory->flush);
}

static const unsigned char *read_contents(const char *path, uint64_t pages) {
  unsigned char *contents = allocate(pages, PAGE);
  FILE *file = fopen(path, "rb");
  if (file == NULL)
    pool_failure("cannot open the file of pages", path);
  if (fread(contents, PAGE, pages, file) != pages)
    usage_error(usage, "%s has fewer than %" PRIu64 " whole pages", path, pages);
  fclose(file);
  return contents;
}

static int report(const struct memory *memory, const struct state *state, uint64_t resumed) {
  printf("cold_pages: flush=%s accesses=%" PRIu64 " in_frames=%" PRIu64 " in_pool=%" PRIu64
         " pool_bytes=%" PRIu64 " resumed=%" PRIu64 " %s%s\n",
         flush_names[memory->flush], state->accesses, state->in_frames, state->in_entries,
         state->entry_bytes, resumed,
         state->fault == NULL ? "ok" : "WRONG: ", state->fault == NULL ? "" : state->fault);
  return state->fault == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **values) {
  static const struct option options[] = {
      {"flush", required_argument, NULL, 'f'}, {"pool", required_argument, NULL, 'P'},
      {"pages", required_argument, NULL, 'p'}, {"crash-at", required_argument, NULL, 'x'},
      {"check", no_argument, NULL, 'c'},       {0}};
  static struct host host = {
      .memory = {.pages = 6, .frames = 3, .accesses = 16, .flush = FLUSH_DEFAULT}};
  struct memory *memory = &host.memory;
  const char *pool = NULL, *pages = NULL;
  bool is_check_only = false;
  for (int option; (option = getopt_long(count, values, "n:m:a:", options, NULL)) != -1;)
    switch (option) {
    case 'n':
      memory->pages = number_option(usage, "-n", optarg, 1, PAGES_MAX);
      break;
    case 'm':
      memory->frames = number_option(usage, "-m", optarg, 1, PAGES_MAX);
      break;
    case 'a':
      memory->accesses = number_option(usage, "-a", optarg, 1, ACCESSES_MAX);
      break;
    case 'f':
      memory->flush = flush_option(usage, optarg);
      break;
    case 'P':
      pool = optarg;
      break;
    case 'p':
      pages = optarg;
      break;
    case 'x':
      crash_at = number_option(usage, "--crash-at", optarg, 1, UINT64_MAX);
      break;
    case 'c':
      is_check_only = true;
      break;
    default:
      usage_error(usage, "wrong option");
    }
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  if (pages == NULL)
    usage_error(usage, "--pages FILE is missing: whose pages are kept");
  if (is_check_only && pool == NULL)
    usage_error(usage, "--check needs --pool");
  memory->contents = read_contents(pages, memory->pages);
  open_pool(memory, pool, is_check_only);
  struct state before = examine_all(memory);
  if (before.fault != NULL || is_check_only)
    return report(memory, &before, 0);
  recover(memory, &before);
  run(&host, before.accesses);
  struct state after = examine_all(memory);
  if (after.fault == NULL && after.accesses != memory->accesses)
    after.fault = "accesses are left over";
  return report(memory, &after, before.accesses);
}
