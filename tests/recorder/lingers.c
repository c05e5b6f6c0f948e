/* SPDX-License-Identifier: Apache-2.0 */
/* Threads linger in loops in which the recorder has code behind each slow instruction, in front of
 * the next one: interrupts arrive when the slow one ends, right in that code. Meanwhile the engine
 * makes code anew and takes them out of theirs, again and again (new_places.h). With the name of a
 * file that cannot be executed it tries to, which stops the others where they are. Prints where
 * each thread counts its rounds, and how many there were. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define PLACES 30
#include "new_places.h"

#define LINGERERS 2
/* Of each thread between two stops: one that has not run since the last is met outside its code. */
#define ROUNDS_BETWEEN 1000

static volatile int is_over;
static volatile uint64_t rounds[LINGERERS * 8];

/* One round is one block (with --values, two); no two operands share an address. */
static void *linger(void *argument) {
  uint64_t thread = (uintptr_t)argument, zero = 0, index = thread * 8, flag;
  __asm__ volatile("1: pause\n\tmov (%2, %1), %k0\n\tpause\n\tmov (%2, %1, 2), %k0\n\t"
                   "pause\n\tmov (%2, %1, 4), %k0\n\tpause\n\taddq $1, (%4, %3, 8)\n\t"
                   "test %k0, %k0\n\tje 1b"
                   : "=&r"(flag)
                   : "r"(zero), "r"(&is_over), "r"(index), "r"(rounds)
                   : "memory", "cc");
  return NULL;
}

/* Waits until each thread has made `more` rounds. */
static void let_run(uint64_t more) {
  for (int i = 0; i < LINGERERS; i++)
    for (uint64_t before = rounds[i * 8]; rounds[i * 8] < before + more;)
      usleep(100);
}

int main(int count, char **arguments) {
  pthread_t lingerer[LINGERERS];
  for (uintptr_t i = 0; i < LINGERERS; i++)
    pthread_create(&lingerer[i], NULL, linger, (void *)i);
  let_run(1);
  for (int place = 0; place < PLACES; place++) {
    if (count > 1)
      execl(arguments[1], arguments[1], (char *)NULL);
    else
      at_place(place);
    let_run(ROUNDS_BETWEEN);
  }
  is_over = 1;
  for (int i = 0; i < LINGERERS; i++)
    pthread_join(lingerer[i], NULL);
  for (int i = 0; i < LINGERERS; i++)
    printf("word%d %ju\nrounds%d %ju\n", i, (uintmax_t)(uintptr_t)&rounds[i * 8], i,
           (uintmax_t)rounds[i * 8]);
  return 0;
}
