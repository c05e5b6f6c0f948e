// SPDX-License-Identifier: Apache-2.0
//
// A queue of tasks for each thread, polled under its mutex; who finds its own empty looks into the
// others. A task makes the next one when it ends, for another thread, so that one is under way at
// any time, and whoever runs it, the critical path is the work of all.
#include <stdatomic.h>

#include "rounds.h"
#include "wait_while.h"

enum { TASKS = 2 * ROUNDS };

struct queue {
  _Alignas(LINE_BYTES) pthread_mutex_t mutex;
  unsigned tasks;
};

static struct queue queues[THREADS] = {[0 ... THREADS - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER}};
static _Alignas(LINE_BYTES) atomic_uint unfinished = TASKS;

__attribute__((constructor)) static void begin(void) { queues[0].tasks = 1; }

static bool take_from(struct queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  bool has_task = queue->tasks > 0;
  if (has_task)
    queue->tasks--;
  pthread_mutex_unlock(&queue->mutex);
  return has_task;
}

static bool take(unsigned thread) {
  for (unsigned step = 0; step < THREADS; step++)
    if (take_from(&queues[(thread + step) % THREADS]))
      return true;
  return false;
}

static void put(unsigned thread) {
  struct queue *queue = &queues[thread];
  pthread_mutex_lock(&queue->mutex);
  queue->tasks++;
  pthread_mutex_unlock(&queue->mutex);
}

static void run(unsigned thread) {
  for (;;) {
    bool has_task = false;
    WAIT_WHILE(!(has_task = take(thread)) && atomic_load(&unfinished) > 0);
    if (!has_task)
      return;
    work(thread, LONG_WORK);
    unsigned left = atomic_fetch_sub(&unfinished, 1) - 1;
    if (left > 0)
      put(left % THREADS);
  }
}

static struct path critical_path(void) { return path_then((struct path){0}, 0, TASKS * LONG_WORK); }
