/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads take locks that are always free, each by code of its own: so many places in the
 * program take as many locks.
 *
 *   many_locks PLACES LOCKS    at most 80 places */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define LOCKS_MAX 512

static volatile int lock[80 * LOCKS_MAX];
static uint64_t counted;
static int places, locks;

#define TAKE(place)                                                                                \
  static __attribute__((noinline)) void take_##place(volatile int *first) {                        \
    for (int i = 0; i < locks; i++) {                                                              \
      while (__atomic_exchange_n(&first[i], 1, __ATOMIC_ACQUIRE) != 0)                             \
        __builtin_ia32_pause();                                                                    \
      counted++;                                                                                   \
      __atomic_store_n(&first[i], 0, __ATOMIC_RELEASE);                                            \
    }                                                                                              \
  }
#define FOR_8(of, tens)                                                                            \
  of(tens##0) of(tens##1) of(tens##2) of(tens##3) of(tens##4) of(tens##5) of(tens##6) of(tens##7)
#define FOR_80(of)                                                                                 \
  FOR_8(of, 1)                                                                                     \
  FOR_8(of, 2) FOR_8(of, 3) FOR_8(of, 4) FOR_8(of, 5) FOR_8(of, 6) FOR_8(of, 7) FOR_8(of, 8)       \
      FOR_8(of, 9) FOR_8(of, 10)

FOR_80(TAKE)

#define NAME(place) take_##place,
static void (*const take[])(volatile int *) = {FOR_80(NAME)};

static void *take_all(void *unused) {
  for (int place = 0; place < places; place++)
    take[place](&lock[place * LOCKS_MAX]);
  return unused;
}

int main(int argc, char **argv) {
  pthread_t other;
  if (argc != 3)
    return 2;
  places = atoi(argv[1]);
  locks = atoi(argv[2]);
  if (places > 80 || locks > LOCKS_MAX)
    return 2;
  for (int i = 0; i < 2; i++) {
    pthread_create(&other, NULL, take_all, NULL);
    pthread_join(other, NULL);
  }
  return counted == 2ul * places * locks ? 0 : 1;
}
