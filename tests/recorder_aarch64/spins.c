/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that wait for another thread's store, and loops that look like it but count. Each runs
 * between markers; prints the address that is waited for. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define MARK_BEGIN "movz xzr, #0x5001, lsl #48\n\t"
#define MARK_END "\n\tmovz xzr, #0x5002, lsl #48"

static volatile int is_ready, plain_flag, pausing_flag, counted_flag;

static void *set_flags(void *argument) {
  struct timespec time = {.tv_nsec = 50000000};
  (void)argument;
  while (!is_ready)
    nanosleep(&time, NULL);
  nanosleep(&time, NULL);
  plain_flag = 1;
  nanosleep(&time, NULL);
  pausing_flag = 1;
  return NULL;
}

int main(void) {
  pthread_t other;
  uint64_t product = 1, rounds = 100000, factor = 3;
  pthread_create(&other, NULL, set_flags, NULL);
  printf("plain %ju\npausing %ju\n", (uintmax_t)(uintptr_t)&plain_flag,
         (uintmax_t)(uintptr_t)&pausing_flag);
  fflush(stdout);
  is_ready = 1;
  /* A block that jumps to itself until memory changes. */
  __asm__ volatile(MARK_BEGIN "1: ldr w9, [%0]\n\tcbz w9, 1b" MARK_END ::"r"(&plain_flag)
                   : "x9", "memory");
  /* Two blocks, one with a pause, until memory changes. */
  __asm__ volatile(MARK_BEGIN "b 2f\n1: yield\n2: ldar w9, [%0]\n\tcmp w9, #0\n\tb.eq 1b" MARK_END
                   :
                   : "r"(&pausing_flag)
                   : "x9", "memory", "cc");
  /* A pause in each round, but it is the counter that ends it. */
  __asm__ volatile(MARK_BEGIN "mov w10, #5000\n"
                              "1: ldr w9, [%0]\n\tcbnz w9, 2f\n\t"
                              "yield\n\tsubs w10, w10, #1\n\tb.ne 1b\n2:" MARK_END
                   :
                   : "r"(&counted_flag)
                   : "x9", "x10", "memory", "cc");
  /* No pause, reads the same address over and over: work. */
  __asm__ volatile(MARK_BEGIN
                   "1: ldr x9, [%2]\n\tmul %0, %0, x9\n\tsubs %1, %1, #1\n\tb.ne 1b" MARK_END
                   : "+r"(product), "+r"(rounds)
                   : "r"(&factor)
                   : "x9", "memory", "cc");
  pthread_join(other, NULL);
  return product == 1;
}
