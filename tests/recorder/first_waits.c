/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads pass loops that could wait, in turn, so that nobody ever goes round in one; and go
 * through loops that look like those and walk or count. Prints the addresses of what could be
 * waited for. */
#include "case.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

extern char __data_start[], _end[]; /* from the linker */

enum { CELLS = 64 };

struct cell {
  struct cell *_Atomic next;
  _Alignas(64) atomic_int value;
};

static _Alignas(64) atomic_int flag = 1;
static _Alignas(64) atomic_int lock_word;
static _Alignas(64) atomic_int ticket, served;
static _Alignas(64) atomic_int highest, counter, cells_used = CELLS / 2;
static struct cell cells[CELLS];
static char text[CELLS];
static sem_t other_may_go, first_may_go;

static void pass_flag(void) {
  while (atomic_load(&flag) == 0)
    __builtin_ia32_pause();
}

static void take_and_give_lock(void) {
  while (atomic_exchange(&lock_word, 1) != 0)
    __builtin_ia32_pause();
  atomic_store(&lock_word, 0);
}

static void take_and_give_turn(void) {
  int own = atomic_fetch_add(&ticket, 1);
  while (atomic_load(&served) != own)
    __builtin_ia32_pause();
  atomic_store(&served, own + 1);
}

/* Loops that are left by what they read, and do not wait. */
static void work(int value) {
  const char *at = text;
  while (*(const volatile char *)at != '\0')
    at++;
  struct cell *cell = cells;
  while (atomic_load(&cell->next) != NULL)
    cell = atomic_load(&cell->next);
  int index = 0;
  while (index < atomic_load(&cells_used) && atomic_load(&cells[index].value) != value)
    index++;
  int seen = atomic_load(&highest);
  while (seen < value && !atomic_compare_exchange_weak(&highest, &seen, value))
    ;
  seen = atomic_load(&counter);
  while (!atomic_compare_exchange_weak(&counter, &seen, seen + 1))
    ;
  atomic_store(&cells[index].value, value);
  text[index] = (char)('a' + value);
}

static void go(int value) {
  pass_flag();
  take_and_give_lock();
  take_and_give_turn();
  work(value);
}

static void *other(void *unused) {
  for (int round = 0; round < 3; round++) {
    sem_wait(&other_may_go);
    go(round);
    sem_post(&first_may_go);
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  for (int i = 0; i + 1 < CELLS; i++) {
    atomic_store(&cells[i].next, &cells[i + 1]);
    text[i] = 'a';
  }
  sem_init(&other_may_go, 0, 0);
  sem_init(&first_may_go, 0, 0);
  pthread_create(&thread, NULL, other, NULL);
  printf("program %ju %ju\n", (uintmax_t)(uintptr_t)__data_start, (uintmax_t)(uintptr_t)_end);
  printf("flag %ju\nlock %ju\nticket %ju\nserved %ju\n", (uintmax_t)(uintptr_t)&flag,
         (uintmax_t)(uintptr_t)&lock_word, (uintmax_t)(uintptr_t)&ticket,
         (uintmax_t)(uintptr_t)&served);
  fflush(stdout);
  for (int round = 0; round < 3; round++) {
    sem_post(&other_may_go);
    sem_wait(&first_may_go);
    atomic_store(&flag, 2 + round);
    go(10 + round);
  }
  pthread_join(thread, NULL);
  return 0;
}
