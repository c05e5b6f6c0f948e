/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads update words in every way at the same time, between markers: 16 bytes at once among
 * them, where an emulator may have to stop the other thread. What each of them executes does not
 * depend on the other. Prints where the words are. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 2000

static struct {
  _Alignas(64) uint64_t pair[2], single;
  _Alignas(64) unsigned char other[128];
} shared;

static void *update(void *argument) {
  (void)argument;
  __asm__ volatile(
      ".arch_extension lse\n\t"
      "mov x9, %2\n\tadd x12, %1, #64\n\tb 1f\n1:\n\t"
      "movz xzr, #0x5001, lsl #48\n2:\n\t"
      "mov x2, #0\n\tmov x3, #0\n\tmov x4, #0\n\tmov x5, #0\n\tcasp x2, x3, x4, x5, [%0]\n\t"
      "mov x6, #1\n\tldadd x6, x7, [x12]\n\t"
      "ldadd x6, x7, [%0, #0]\n\tldxp x2, x3, [%0]\n\tstxp w8, x2, x3, [%0]\n\t"
      "subs x9, x9, #1\n\tb.ne 2b\n\t"
      "movz xzr, #0x5002, lsl #48\n\tb 3f\n3:"
      :
      : "r"(shared.pair), "r"(shared.other), "r"((uint64_t)ROUNDS)
      : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x12", "memory", "cc");
  return NULL;
}

int main(void) {
  pthread_t one, other;
  uint64_t sum;
  pthread_create(&one, NULL, update, NULL);
  pthread_create(&other, NULL, update, NULL);
  pthread_join(one, NULL);
  pthread_join(other, NULL);
  __builtin_memcpy(&sum, shared.other + 64, sizeof(sum));
  printf("pair %ju\nother %ju\nadded %ju\n", (uintmax_t)(uintptr_t)shared.pair,
         (uintmax_t)(uintptr_t)shared.other, (uintmax_t)sum);
  return sum == 2 * ROUNDS ? 0 : 1;
}
