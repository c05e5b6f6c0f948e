/* Threads of which some hold locks, and some wait, where the region begins. */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all;
static sem_t tokens;
static int tasks;
static volatile uint64_t sink;
__attribute__((noinline)) void region_begins(void) { __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) void region_ends(void) { __asm__ volatile("" ::: "memory"); }
static void work(long n) {
  uint64_t x = 1;
  while (n-- > 0) {
    x = x * 6364136223846793005u + 1;
    __asm__ volatile("" : "+r"(x));
  }
  sink = x;
}
static void meet(void) {
  for (int i = 0; i < 4; i++) {
    pthread_barrier_wait(&all);
    work(20000);
  }
}
static void *locker(void *none) {
  work(1000);
  pthread_mutex_lock(&held);
  work(50000);
  pthread_mutex_unlock(&held);
  meet();
  return none;
}
static void *taker(void *none) {
  for (int i = 0; i < 20; i++) {
    pthread_mutex_lock(&queue);
    while (tasks == 0)
      pthread_cond_wait(&filled, &queue);
    tasks--;
    pthread_mutex_unlock(&queue);
    work(5000);
    sem_wait(&tokens);
  }
  meet();
  return none;
}
int main(void) {
  pthread_t one, other;
  pthread_barrier_init(&all, 0, 3);
  sem_init(&tokens, 0, 3);
  pthread_mutex_lock(&held);
  pthread_create(&one, 0, locker, 0);
  pthread_create(&other, 0, taker, 0);
  for (int i = 0; i < 20; i++) {
    work(3000);
    if (i == 8)
      region_begins();
    if (i == 15)
      pthread_mutex_unlock(&held);
    pthread_mutex_lock(&queue);
    tasks++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&queue);
    sem_post(&tokens);
  }
  meet();
  region_ends();
  pthread_join(one, 0);
  pthread_join(other, 0);
  work(1000000);
  puts("done");
  return 0;
}
