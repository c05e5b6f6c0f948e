// SPDX-License-Identifier: Apache-2.0
//
// A thread waits at a word while it holds a mutex, and does not give that back meanwhile: what
// others do under the mutex comes after the wait.
#include <stdatomic.h>

#define THREADS 3
#include "rounds.h"
#include "wait_while.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(LINE_BYTES) atomic_uint locked, stored, used;

static void store_after_work(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    WAIT_WHILE(atomic_load(&locked) <= round);
    work(thread, LONG_WORK);
    atomic_store(&stored, round + 1);
  }
}

static void use_lock(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    WAIT_WHILE(atomic_load(&locked) <= round);
    pthread_mutex_lock(&mutex);
    work(thread, LONG_WORK);
    pthread_mutex_unlock(&mutex);
    atomic_store(&used, round + 1);
  }
}

// The last one to be made: the others look at what it stores before it does.
static void wait_with_lock(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    pthread_mutex_lock(&mutex);
    atomic_store(&locked, round + 1);
    WAIT_WHILE(atomic_load(&stored) <= round);
    work(thread, SHORT_WORK);
    pthread_mutex_unlock(&mutex);
    WAIT_WHILE(atomic_load(&used) <= round);
  }
}

static void run(unsigned thread) {
  if (thread == 0)
    store_after_work(thread);
  else if (thread == 1)
    use_lock(thread);
  else
    wait_with_lock(thread);
}

static struct path critical_path(void) {
  struct path path = path_then((struct path){0}, 0, ROUNDS * LONG_WORK);
  path = path_then(path, 1, ROUNDS * LONG_WORK);
  return path_then(path, 2, ROUNDS * SHORT_WORK);
}
