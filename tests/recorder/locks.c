/* SPDX-License-Identifier: Apache-2.0 */
/* Takes an object and gives it back: `locks KIND ROUNDS THREADS CORES`. The first thread does so
 * once, alone; then the others do, and in every sixteenth round whoever has it sleeps, so that they
 * have to wait. With 0 threads the first one does all rounds, between ROI markers and without
 * sleeping.
 */
#define _GNU_SOURCE
#include "case.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 8

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, adaptive, recursive;
static pthread_mutex_t by_turns[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_spinlock_t spin;
static pthread_rwlock_t written_lock = PTHREAD_RWLOCK_INITIALIZER,
                        read_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t barrier;
static volatile uint64_t counter, arrived, generation;
static long rounds, threads;

static void inside(long round) {
  counter++;
  if (threads > 0 && round % 16 == 0)
    usleep(100);
}

/* Threads meet at the first one; it is the second one that the first thread takes alone. */
static void by_mutex(long round) {
  pthread_mutex_lock(&by_turns[round % 2]);
  inside(round);
  pthread_mutex_unlock(&by_turns[round % 2]);
}

static void by_adaptive(long round) {
  pthread_mutex_lock(&adaptive);
  inside(round);
  pthread_mutex_unlock(&adaptive);
}

static void by_recursive(long round) {
  pthread_mutex_lock(&recursive);
  pthread_mutex_lock(&recursive);
  inside(round);
  pthread_mutex_unlock(&recursive);
  pthread_mutex_unlock(&recursive);
}

static void by_spin(long round) {
  pthread_spin_lock(&spin);
  inside(round);
  pthread_spin_unlock(&spin);
}

/* A lock that is both read and written changes its phase whenever the other comes, which takes
 * instructions, and how often that happens depends on who comes when, not on waiting. */
static void by_rwlock(long round) {
  pthread_rwlock_wrlock(&written_lock);
  inside(round);
  pthread_rwlock_unlock(&written_lock);
  pthread_rwlock_rdlock(&read_lock);
  pthread_rwlock_unlock(&read_lock);
}

static void by_semaphore(long round) {
  sem_wait(&semaphore);
  inside(round);
  sem_post(&semaphore);
}

static void by_barrier(long round) {
  inside(round);
  pthread_barrier_wait(&barrier);
}

static void by_condition(long round) {
  pthread_mutex_lock(&mutex);
  inside(round);
  uint64_t mine = generation;
  if (++arrived == (uint64_t)threads) {
    arrived = 0;
    generation++;
    pthread_cond_broadcast(&condition);
  } else {
    while (mine == generation)
      pthread_cond_wait(&condition, &mutex);
  }
  pthread_mutex_unlock(&mutex);
}

static const struct {
  const char *name;
  void (*round)(long round);
} kinds[] = {{"mutex", by_mutex},         {"adaptive", by_adaptive}, {"recursive", by_recursive},
             {"spin", by_spin},           {"rwlock", by_rwlock},     {"semaphore", by_semaphore},
             {"condition", by_condition}, {"barrier", by_barrier}};
static void (*one_round)(long round);

static void *work(void *argument) {
  for (long round = 0; round < rounds; round++)
    one_round(round);
  return argument;
}

static void initialise(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(&adaptive, &attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&recursive, &attributes);
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  sem_init(&semaphore, 0, 1);
  pthread_barrier_init(&barrier, NULL, threads == 0 ? 1 : (unsigned)threads);
}

static void alone(void) {
  __asm__ volatile(MARK_BEGIN ::: "memory");
  for (long round = 0; round < rounds; round++)
    one_round(round);
  __asm__ volatile(MARK_END ::: "memory");
}

static void pin(void) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
    if (CPU_ISSET(i, &allowed))
      CPU_SET(i, &one);
  }
  sched_setaffinity(0, sizeof(one), &one);
}

int main(int count, char **arguments) {
  if (count != 5)
    return 2;
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    if (strcmp(kinds[i].name, arguments[1]) == 0)
      one_round = kinds[i].round;
  }
  rounds = atol(arguments[2]);
  threads = atol(arguments[3]);
  if (atol(arguments[4]) == 1)
    pin();
  initialise();
  if (one_round != by_condition && one_round != by_barrier)
    one_round(1);
  if (threads == 0) {
    alone();
    return 0;
  }
  pthread_t thread[THREADS_MAX];
  for (long i = 0; i < threads; i++)
    pthread_create(&thread[i], NULL, work, NULL);
  for (long i = 0; i < threads; i++)
    pthread_join(thread[i], NULL);
  return 0;
}
