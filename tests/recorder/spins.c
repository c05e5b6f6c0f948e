/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that wait for another thread's store, and loops that look like it but count. Each runs
 * between ROI markers; prints the address that is waited for. */
#include "case.h"

#include <pthread.h>
#include <time.h>

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
  __asm__ volatile(MARK_BEGIN
                   "1: mov %0, %%eax\n\ttest %%eax, %%eax\n\tje 1b" MARK_END ::"m"(plain_flag)
                   : "rax", "memory", "cc");
  /* Two blocks, one with a pause, until memory changes. */
  __asm__ volatile(MARK_BEGIN
                   "jmp 2f\n1: pause\n2: cmpl $0, %0\n\tje 1b" MARK_END ::"m"(pausing_flag)
                   : "memory", "cc");
  /* A pause in each round, but it is the counter that ends it. */
  __asm__ volatile(MARK_BEGIN "mov $5000, %%ecx\n"
                              "1: mov %0, %%eax\n\ttest %%eax, %%eax\n\tjne 2f\n\t"
                              "pause\n\tsub $1, %%ecx\n\tjne 1b\n2:" MARK_END ::"m"(counted_flag)
                   : "rax", "rcx", "memory", "cc");
  /* No pause, reads the same address over and over: work. */
  __asm__ volatile(MARK_BEGIN "1: imul %2, %0\n\tdec %1\n\tjne 1b" MARK_END
                   : "+r"(product), "+r"(rounds)
                   : "m"(factor)
                   : "memory", "cc");
  pthread_join(other, NULL);
  return product == 1;
}
