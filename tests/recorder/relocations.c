/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a synchronisation function from ever new places to which it has jumped before: each time
 * the engine makes the code there anew, and takes all other threads out of theirs, wherever they
 * are. Those store to a ring of memory and wait for flags meanwhile; prints what they did. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WAITS 3
#define WAIT_PLACES 4
#define PLACES (WAITS * WAIT_PLACES)
#include "new_places.h"

#define STORERS 3
#define RING_WORDS (1u << 16)
#define ROUND_WORDS 4
#define ROUNDS_MAX 100000
/* Long enough for code to be made, and for many rounds. */
#define WAITED_NANOSECONDS 10000000

static volatile int is_over, wait_reached, plain_flag, pausing_flag, testing_flag;
static uint64_t ring[STORERS][RING_WORDS] __attribute__((aligned(4096)));
static uint64_t rounds[STORERS];

/* One round is one block, of 4 stores and 100 sines. */
static void *store(void *argument) {
  uint64_t thread = (uintptr_t)argument, round = 0;
  while (!is_over && round < ROUNDS_MAX) {
    uint64_t *at = &ring[thread][round * ROUND_WORDS % RING_WORDS];
    __asm__ volatile("fldz\n\t"
                     "mov %1, (%0)\n\t.rept 25\n\tfsin\n\t.endr\n\t"
                     "mov %1, 8(%0)\n\t.rept 25\n\tfsin\n\t.endr\n\t"
                     "mov %1, 16(%0)\n\t.rept 25\n\tfsin\n\t.endr\n\t"
                     "mov %1, 24(%0)\n\t.rept 25\n\tfsin\n\t.endr\n\t"
                     "fstp %%st(0)" ::"r"(at),
                     "r"(round)
                     : "st", "memory");
    round++;
  }
  rounds[thread] = round;
  return NULL;
}

static void *wait_for_flags(void *argument) {
  (void)argument;
  wait_reached = 1;
  __asm__ volatile("1: mov %0, %%eax\n\ttest %%eax, %%eax\n\tje 1b" ::"m"(plain_flag)
                   : "rax", "memory", "cc");
  wait_reached = 2;
  __asm__ volatile("jmp 2f\n1: pause\n2: cmpl $0, %0\n\tje 1b" ::"m"(pausing_flag)
                   : "memory", "cc");
  wait_reached = 3;
  __asm__ volatile("1: cmpl $0, (%0)\n\tjne 2f\n\tpause\n\tjmp 1b\n2:" ::"r"(&testing_flag)
                   : "memory", "cc");
  return NULL;
}

static int64_t nanoseconds(clockid_t clock) {
  struct timespec time;
  if (clock_gettime(clock, &time) != 0)
    exit(3);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Returns when the thread has come to its wait of that number and has spent time there, however
 * late it gets a processor. */
static void until_it_waits(pthread_t waiter, int wait) {
  clockid_t of_waiter;
  if (pthread_getcpuclockid(waiter, &of_waiter) != 0)
    exit(3);
  while (wait_reached < wait)
    usleep(1000);
  int64_t start = nanoseconds(of_waiter);
  while (nanoseconds(of_waiter) < start + WAITED_NANOSECONDS)
    usleep(1000);
}

int main(void) {
  pthread_t storer[STORERS], waiter;
  printf("ring %ju\nplain %ju\npausing %ju\ntesting %ju\n", (uintmax_t)(uintptr_t)ring,
         (uintmax_t)(uintptr_t)&plain_flag, (uintmax_t)(uintptr_t)&pausing_flag,
         (uintmax_t)(uintptr_t)&testing_flag);
  for (uintptr_t i = 0; i < STORERS; i++)
    pthread_create(&storer[i], NULL, store, (void *)i);
  pthread_create(&waiter, NULL, wait_for_flags, NULL);
  volatile int *flags[WAITS] = {&plain_flag, &pausing_flag, &testing_flag};
  for (int wait = 0, place = 0; wait < WAITS; wait++) {
    until_it_waits(waiter, wait + 1);
    for (; place < (wait + 1) * WAIT_PLACES; place += 2) {
      at_place(place);
      at_place(place + 1);
    }
    *flags[wait] = 1;
  }
  is_over = 1;
  for (int i = 0; i < STORERS; i++)
    pthread_join(storer[i], NULL);
  pthread_join(waiter, NULL);
  for (int i = 0; i < STORERS; i++)
    printf("rounds%d %ju\n", i, (uintmax_t)rounds[i]);
  return 0;
}
