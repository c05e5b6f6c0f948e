// SPDX-License-Identifier: Apache-2.0
//
// Sequence locks: each thread changes a record of its own and reads those of the others. Nobody
// waits for a change: only while a record is being changed, which is short, so the critical path is
// one thread's work. Which change a reader was recorded to see says nothing of a replay.
#include "rounds.h"
#include "version_lock.h"

enum { CHANGING = 100, RECORD_WORDS = 4 };

static struct record {
  _Alignas(LINE_BYTES) version_lock version;
  _Atomic uint64_t word[RECORD_WORDS];
} records[THREADS];

static volatile bool is_torn;

static void change(unsigned thread) {
  struct record *record = &records[thread];
  version_lock_any(&record->version);
  for (unsigned i = 0; i < RECORD_WORDS; i++)
    atomic_fetch_add_explicit(&record->word[i], 1, memory_order_relaxed);
  work(thread, CHANGING);
  version_unlock(&record->version);
}

static void read_whole(struct record *record) {
  uint64_t version, seen[RECORD_WORDS];
  do {
    version = version_read(&record->version);
    for (unsigned i = 0; i < RECORD_WORDS; i++)
      seen[i] = atomic_load_explicit(&record->word[i], memory_order_relaxed);
  } while (!version_is_still(&record->version, version));
  if (seen[0] != seen[RECORD_WORDS - 1])
    is_torn = true;
}

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    work(thread, LONG_WORK - CHANGING);
    change(thread);
    for (unsigned other = 1; other < THREADS; other++)
      read_whole(&records[(thread + other) % THREADS]);
  }
}

static struct path critical_path(void) { return path_apart(ROUNDS * LONG_WORK); }
