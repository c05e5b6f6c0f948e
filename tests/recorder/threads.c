/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that come and go at any time: in waves, from other threads, detached, cancelled in a
 * wait, and after the main thread has left. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WAVES 6
#define WAVE 12
#define DETACHED 10

static atomic_int detached_done;
static atomic_ulong sum;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile uint64_t after_main;
static int cleaned;

static void *compute(void *argument) {
  uintptr_t value = (uintptr_t)argument;
  for (int i = 0; i < 1000; i++)
    value = value * 31 + 7;
  atomic_fetch_add(&sum, value & 1);
  return (void *)value;
}

static void *nest(void *argument) {
  pthread_t inner;
  void *result;
  if ((uintptr_t)argument == 0)
    return compute(argument);
  pthread_create(&inner, NULL, nest, (void *)((uintptr_t)argument - 1));
  pthread_join(inner, &result);
  return result;
}

static void *finish_detached(void *argument) {
  compute(argument);
  atomic_fetch_add(&detached_done, 1);
  return NULL;
}

static void clean(void *argument) {
  (void)argument;
  cleaned = 1;
  pthread_mutex_unlock(&mutex);
}

static void *wait_for_ever(void *argument) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(clean, argument);
  for (;;)
    pthread_cond_wait(&never, &mutex);
  pthread_cleanup_pop(1);
  return NULL;
}

static void *outlive(void *argument) {
  pthread_t *main_thread = argument;
  pthread_join(*main_thread, NULL);
  after_main = 77;
  printf("outlived %d\n", cleaned);
  exit(8);
}

int main(void) {
  static pthread_t self;
  pthread_t wave[WAVE], other;
  pthread_attr_t attributes;
  printf("after_main %ju\n", (uintmax_t)(uintptr_t)&after_main);
  for (int round = 0; round < WAVES; round++) {
    for (uintptr_t i = 0; i < WAVE; i++)
      pthread_create(&wave[i], NULL, compute, (void *)i);
    for (int i = 0; i < WAVE; i++)
      pthread_join(wave[i], NULL);
  }
  pthread_create(&other, NULL, nest, (void *)5);
  pthread_join(other, NULL);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (uintptr_t i = 0; i < DETACHED; i++)
    pthread_create(&other, &attributes, finish_detached, (void *)i);
  while (atomic_load(&detached_done) < DETACHED)
    usleep(1000);
  pthread_create(&other, NULL, wait_for_ever, NULL);
  usleep(20000);
  pthread_cancel(other);
  pthread_join(other, NULL);
  self = pthread_self();
  fflush(stdout);
  pthread_create(&other, NULL, outlive, &self);
  pthread_exit(NULL);
}
