// SPDX-License-Identifier: Apache-2.0
//
// A sequence lock that one thread nearly always has: the others read what it protects between two
// changes, work for less long than a change takes, and so come back while the next one is under
// way. The critical path is that of a reader: all changes, then its work behind the last.
#include <semaphore.h>

#include "rounds.h"
#include "version_lock.h"

enum { OUTSIDE_WORK = 600, BETWEEN_WORK = LONG_WORK / 4 * 3, LAST_WORK = 4 * LONG_WORK };
enum { FIRST_CHANGE_NS = 20000000 };

static _Alignas(LINE_BYTES) version_lock version;
static _Alignas(LINE_BYTES) _Atomic uint64_t changes;

static sem_t may_come;

__attribute__((constructor)) static void begin(void) { sem_init(&may_come, 0, 0); }

// A change lasts until the others poll: else one thread may do all of its rounds before another
// begins, where there are fewer processors than threads.
static void await_readers(void) {
  for (unsigned reader = 1; reader < THREADS; reader++)
    sem_post(&may_come);
  nanosleep(&(struct timespec){.tv_nsec = FIRST_CHANGE_NS}, NULL);
}

static void change_all(void) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    version_lock_any(&version);
    if (round == 0)
      await_readers();
    work(0, LONG_WORK);
    atomic_fetch_add_explicit(&changes, 1, memory_order_relaxed);
    version_unlock(&version);
    work(0, OUTSIDE_WORK);
  }
}

static void read_all(unsigned thread) {
  sem_wait(&may_come);
  for (unsigned round = 0; round < ROUNDS; round++) {
    uint64_t before;
    do {
      before = version_read(&version);
      (void)atomic_load_explicit(&changes, memory_order_relaxed);
    } while (!version_is_still(&version, before));
    work(thread, BETWEEN_WORK);
  }
  work(thread, LAST_WORK);
}

static void run(unsigned thread) {
  if (thread == 0)
    change_all();
  else
    read_all(thread);
}

static struct path critical_path(void) {
  struct path changes = {0};
  changes = path_then(changes, 0, ROUNDS * (LONG_WORK + OUTSIDE_WORK) - OUTSIDE_WORK);
  return path_then(changes, 1, BETWEEN_WORK + LAST_WORK);
}
