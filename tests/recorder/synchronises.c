/* SPDX-License-Identifier: Apache-2.0 */
/* Uses every synchronisation function a known number of times, and prints where its objects are:
 * "NAME ADDRESS". Which thread does what is fixed; when is not. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 25

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER, all = PTHREAD_COND_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t tokens, replies, full;
static int turn, opened;
static volatile uint64_t by_mutex, by_spin, by_writers;

static void expect(int result, int wanted) {
  if (result != wanted) {
    fprintf(stderr, "%d where %d was expected\n", result, wanted);
    _exit(9);
  }
}

static struct timespec soon(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  time.tv_nsec += 2000000;
  if (time.tv_nsec >= 1000000000) {
    time.tv_nsec -= 1000000000;
    time.tv_sec++;
  }
  return time;
}

static void *work(void *argument) {
  uintptr_t me = (uintptr_t)argument;
  for (int i = 0; i < ROUNDS; i++) {
    pthread_mutex_lock(&mutex);
    by_mutex++;
    pthread_mutex_unlock(&mutex);
    pthread_spin_lock(&spin);
    by_spin++;
    pthread_spin_unlock(&spin);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    by_writers++;
    pthread_rwlock_unlock(&rwlock);
    pthread_barrier_wait(&barrier);
  }
  if (me == 0) { /* posts what the main thread takes */
    for (int i = 0; i < ROUNDS; i++) {
      sem_post(&tokens);
      expect(sem_wait(&replies), 0);
    }
  }
  /* Everybody waits until the main thread opens, which it does once for all. */
  pthread_mutex_lock(&gate);
  while (!opened)
    pthread_cond_wait(&all, &gate);
  pthread_mutex_unlock(&gate);
  return NULL;
}

static void *answer(void *argument) {
  (void)argument;
  pthread_mutex_lock(&gate);
  for (int i = 0; i < ROUNDS; i++) {
    while (turn != 1)
      pthread_cond_wait(&condition, &gate);
    turn = 0;
    pthread_cond_signal(&condition);
  }
  pthread_mutex_unlock(&gate);
  return NULL;
}

static void *hold(void *argument) {
  (void)argument;
  expect(pthread_mutex_trylock(&mutex), EBUSY);
  struct timespec time = soon(CLOCK_REALTIME);
  expect(pthread_mutex_timedlock(&mutex, &time), ETIMEDOUT);
  time = soon(CLOCK_MONOTONIC);
  expect(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &time), ETIMEDOUT);
  expect(pthread_rwlock_tryrdlock(&rwlock), EBUSY);
  expect(pthread_rwlock_trywrlock(&rwlock), EBUSY);
  time = soon(CLOCK_REALTIME);
  expect(pthread_rwlock_timedrdlock(&rwlock, &time), ETIMEDOUT);
  time = soon(CLOCK_REALTIME);
  expect(pthread_rwlock_timedwrlock(&rwlock, &time), ETIMEDOUT);
  expect(pthread_spin_trylock(&spin), EBUSY);
  return NULL;
}

static void failures(void) {
  pthread_t other;
  struct timespec time;
  pthread_mutex_lock(&mutex);
  pthread_rwlock_wrlock(&rwlock);
  pthread_spin_lock(&spin);
  pthread_create(&other, NULL, hold, NULL);
  pthread_join(other, NULL);
  pthread_spin_unlock(&spin);
  pthread_rwlock_unlock(&rwlock);
  time = soon(CLOCK_REALTIME);
  expect(pthread_cond_timedwait(&never, &mutex, &time), ETIMEDOUT);
  time = soon(CLOCK_MONOTONIC);
  expect(pthread_cond_clockwait(&never, &mutex, CLOCK_MONOTONIC, &time), ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
  expect(sem_trywait(&tokens), -1);
  time = soon(CLOCK_REALTIME);
  expect(sem_timedwait(&tokens, &time), -1);
  expect(pthread_mutex_trylock(&mutex), 0);
  pthread_mutex_unlock(&mutex);
  expect(sem_trywait(&full), 0);
  expect(sem_wait(&full), 0);
}

int main(void) {
  pthread_t workers[THREADS], answerer;
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  pthread_barrier_init(&barrier, NULL, THREADS);
  sem_init(&tokens, 0, 0);
  sem_init(&replies, 0, 0);
  sem_init(&full, 0, 2);
  printf("mutex %ju\ngate %ju\ncondition %ju\nall %ju\nnever %ju\nrwlock %ju\nspin %ju\n",
         (uintmax_t)(uintptr_t)&mutex, (uintmax_t)(uintptr_t)&gate,
         (uintmax_t)(uintptr_t)&condition, (uintmax_t)(uintptr_t)&all, (uintmax_t)(uintptr_t)&never,
         (uintmax_t)(uintptr_t)&rwlock, (uintmax_t)(uintptr_t)&spin);
  printf("barrier %ju\ntokens %ju\nreplies %ju\nfull %ju\n", (uintmax_t)(uintptr_t)&barrier,
         (uintmax_t)(uintptr_t)&tokens, (uintmax_t)(uintptr_t)&replies,
         (uintmax_t)(uintptr_t)&full);
  for (uintptr_t i = 0; i < THREADS; i++)
    pthread_create(&workers[i], NULL, work, (void *)i);
  for (int i = 0; i < ROUNDS; i++) {
    expect(sem_wait(&tokens), 0);
    sem_post(&replies);
  }
  pthread_create(&answerer, NULL, answer, NULL);
  pthread_mutex_lock(&gate);
  for (int i = 0; i < ROUNDS; i++) {
    turn = 1;
    pthread_cond_signal(&condition);
    while (turn != 0)
      pthread_cond_wait(&condition, &gate);
  }
  pthread_mutex_unlock(&gate);
  pthread_mutex_lock(&gate);
  opened = 1;
  pthread_cond_broadcast(&all);
  pthread_mutex_unlock(&gate);
  for (int i = 0; i < THREADS; i++)
    pthread_join(workers[i], NULL);
  expect(pthread_tryjoin_np(answerer, NULL) == 0 || pthread_join(answerer, NULL) == 0, 1);
  failures();
  assert(by_mutex == THREADS * ROUNDS && by_spin == by_mutex && by_writers == by_mutex);
  return 0;
}
