// SPDX-License-Identifier: Apache-2.0
//
// A pool of threads that take tasks from a list under a mutex, and wait for more at a condition
// variable. The first thread gives the tasks of each round and waits until they are done.
#include "rounds.h"

enum { TASKS = 2 * (THREADS - 1) };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_tasks = PTHREAD_COND_INITIALIZER, is_done = PTHREAD_COND_INITIALIZER;
static unsigned tasks, unfinished;
static bool ends;

static void give_tasks(void) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    pthread_mutex_lock(&mutex);
    tasks = unfinished = TASKS;
    pthread_cond_broadcast(&has_tasks);
    while (unfinished != 0)
      pthread_cond_wait(&is_done, &mutex);
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_lock(&mutex);
  ends = true;
  pthread_cond_broadcast(&has_tasks);
  pthread_mutex_unlock(&mutex);
}

static bool take_task(void) {
  pthread_mutex_lock(&mutex);
  while (tasks == 0 && !ends)
    pthread_cond_wait(&has_tasks, &mutex);
  bool has_task = tasks > 0;
  if (has_task)
    tasks--;
  pthread_mutex_unlock(&mutex);
  return has_task;
}

static void end_task(void) {
  pthread_mutex_lock(&mutex);
  if (--unfinished == 0)
    pthread_cond_signal(&is_done);
  pthread_mutex_unlock(&mutex);
}

static void run(unsigned thread) {
  if (thread == 0) {
    give_tasks();
    return;
  }
  while (take_task()) {
    work(thread, LONG_WORK);
    end_task();
  }
}

static struct path critical_path(void) {
  return path_then((struct path){0}, 1, ROUNDS * TASKS / (THREADS - 1) * LONG_WORK);
}
