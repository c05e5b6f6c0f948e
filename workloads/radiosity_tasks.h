// SPDX-License-Identifier: Apache-2.0
//
// Queues of tasks, one for each thread, from which others steal: the owner takes the oldest task, a
// thief the youngest. A thread that finds none polls until there is one or all tasks are done. A
// task is a number. They are volatile: which tasks are left after a crash follows from what is
// durable.
#ifndef RADIOSITY_TASKS_H
#define RADIOSITY_TASKS_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "persist.h"

struct task_queue {
  alignas(LINE_BYTES) pthread_mutex_t lock;
  uint32_t first, end; // of the tasks that are waiting
  uint32_t *tasks;
};

struct task_queues {
  unsigned threads;
  struct task_queue *queues;
  // Of all queues: tasks that nobody has taken, and those that are not done.
  alignas(LINE_BYTES) _Atomic uint32_t waiting, unfinished;
};

// Each with room for all tasks that a phase may have.
static inline struct task_queues new_task_queues(unsigned threads, uint32_t capacity) {
  struct task_queues queues = {.threads = threads};
  queues.queues = aligned_alloc(LINE_BYTES, threads * sizeof *queues.queues);
  uint32_t *tasks = calloc(threads, capacity * sizeof *tasks);
  if (queues.queues == NULL || tasks == NULL) {
    perror("no memory for the queues");
    exit(EXIT_FAILURE);
  }
  for (unsigned thread = 0; thread < threads; thread++) {
    queues.queues[thread] = (struct task_queue){.tasks = tasks + (size_t)thread * capacity};
    pthread_mutex_init(&queues.queues[thread].lock, NULL);
  }
  return queues;
}

// The queue begins again at its start when it is empty, as it is between phases.
static inline void put_task(struct task_queues *queues, unsigned thread, uint32_t task) {
  struct task_queue *queue = &queues->queues[thread];
  atomic_fetch_add(&queues->unfinished, 1);
  atomic_fetch_add(&queues->waiting, 1);
  pthread_mutex_lock(&queue->lock);
  if (queue->first == queue->end)
    queue->first = queue->end = 0;
  queue->tasks[queue->end++] = task;
  pthread_mutex_unlock(&queue->lock);
}

// Says that a task which was taken is done.
static inline void complete_task(struct task_queues *queues) {
  atomic_fetch_sub(&queues->unfinished, 1);
}

// Takes a task of the thread's own or of the next thread that has one; false if none has.
static inline bool try_to_take_task(struct task_queues *queues, unsigned thread, uint32_t *task) {
  for (unsigned i = 0; i < queues->threads; i++) {
    struct task_queue *queue = &queues->queues[(thread + i) % queues->threads];
    pthread_mutex_lock(&queue->lock);
    bool is_found = queue->first < queue->end;
    if (is_found)
      *task = i == 0 ? queue->tasks[queue->first++] : queue->tasks[--queue->end];
    pthread_mutex_unlock(&queue->lock);
    if (is_found) {
      atomic_fetch_sub(&queues->waiting, 1);
      return true;
    }
  }
  return false;
}

// Takes a task, for which it polls if it must; false if all of them are done. Adds how often it
// looked in vain.
static inline bool take_task(struct task_queues *queues, unsigned thread, uint32_t *task,
                             uint64_t *polls) {
  while (atomic_load(&queues->unfinished) > 0) {
    if (atomic_load(&queues->waiting) > 0 && try_to_take_task(queues, thread, task))
      return true;
    uint64_t rounds = 0;
    for (; atomic_load(&queues->waiting) == 0 && atomic_load(&queues->unfinished) > 0; rounds++)
      __builtin_ia32_pause();
    *polls += rounds;
  }
  return false;
}

#endif
