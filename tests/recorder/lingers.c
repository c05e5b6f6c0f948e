/* SPDX-License-Identifier: Apache-2.0 */
/* Threads linger in loops in which the recorder has code behind each slow instruction, in front of
 * the next one: interrupts arrive when the slow one ends, right in that code. Meanwhile the engine
 * makes code anew and takes them out of theirs, again and again (relocations.c). With the name of a
 * file that cannot be executed it tries to, which stops the others where they are. Prints where
 * each thread counts its rounds, and how many there were. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define LINGERERS 2
#define PLACES 60
/* Between two stops: a thread that has not run since the last one is met outside its code. */
#define RUN_US 10000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_over;
static volatile uint64_t rounds[LINGERERS * 8];

#define STRING_OF(text) #text
#define STRING(macro) STRING_OF(macro)

#define PLACE_BYTES 32
void places(void *object, void *function);
__asm__(".text\n.balign 32\nplaces:\n"
        ".rept " STRING(PLACES) "\n.balign 32\n\t"
                                "sub $8, %rsp\n\ttest %rsi, %rsi\n\tje 1f\n\tcall *%rsi\n1:\tadd "
                                "$8, %rsp\n\tret\n.endr\n");

static void at_place(int place, void *function) {
  void (*call)(void *, void *) =
      (void (*)(void *, void *))((uintptr_t)places + (uintptr_t)place * PLACE_BYTES);
  call(&mutex, NULL);
  call(&mutex, function);
}

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

int main(int count, char **arguments) {
  pthread_t lingerer[LINGERERS];
  for (uintptr_t i = 0; i < LINGERERS; i++)
    pthread_create(&lingerer[i], NULL, linger, (void *)i);
  for (int i = 0; i < LINGERERS; i++)
    while (rounds[i * 8] == 0)
      usleep(1000);
  for (int place = 0; place < PLACES; place += 2) {
    if (count == 1) {
      at_place(place, (void *)pthread_mutex_lock);
      usleep(RUN_US);
      at_place(place + 1, (void *)pthread_mutex_unlock);
      usleep(RUN_US);
    } else {
      execl(arguments[1], arguments[1], (char *)NULL);
      usleep(RUN_US);
    }
  }
  is_over = 1;
  for (int i = 0; i < LINGERERS; i++)
    pthread_join(lingerer[i], NULL);
  for (int i = 0; i < LINGERERS; i++)
    printf("word%d %ju\nrounds%d %ju\n", i, (uintmax_t)(uintptr_t)&rounds[i * 8], i,
           (uintmax_t)rounds[i * 8]);
  return 0;
}
