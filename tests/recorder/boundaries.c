/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose accesses move on by constants, with another block between rounds a random number of
 * times, long enough that the recorder's buffer is full in every place of their bodies. Prints for
 * each "loop ROUNDS", then "KIND FIRST STEP" for what each round accesses. */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 400000

#define GATHER_ROUNDS 200000

static uint64_t from[ROUNDS + 64], to[ROUNDS + 64], other[ROUNDS + 64];

static void line(const char *kind, const void *first, int step) {
  printf("%s %ju %d\n", kind, (uintmax_t)(uintptr_t)first, step);
}

static void strings(void) {
  uint64_t *p = from, *q = to, rounds = ROUNDS, i = 0;
  printf("loop %d\n", ROUNDS);
  line("load", from + 8, 8);
  line("string_source", from, 8);
  line("string_source", from + 2, 8);
  line("string_destination", to, 8);
  line("string_destination", to + 2, 8);
  line("store", to + 10, 8);
  line("store", other, 8);
  line("load", other + 2, 8);
  line("string_destination", other + 3, 8);
  line("string_destination", other + 4, 8);
  fflush(stdout);
  __asm__ volatile("mov $1, %%r8d\n\tjmp 1f\n"
                   "1: mov 64(%0), %%rax\n\t"
                   "mov $2, %%ecx\n\t"
                   "mov %0, %%rsi\n\t"
                   "mov %1, %%rdi\n\t"
                   "rep movsq\n\t"
                   "mov %%rax, 80(%1)\n\t"
                   "mov %%rax, (%4,%3,8)\n\t"
                   "mov 16(%4,%3,8), %%rax\n\t"
                   "lea 24(%4,%3,8), %%rdi\n\t"
                   "mov $8, %%ecx\n\t"
                   "rep stosb\n\t"
                   "add $8, %0\n\t"
                   "add $8, %1\n\t"
                   "inc %3\n\t"
                   "imul $1103515245, %%r8d, %%r8d\n\t"
                   "add $12345, %%r8d\n\t"
                   "mov %%r8d, %%ecx\n\t"
                   "shr $30, %%ecx\n\t"
                   "3: dec %%ecx\n\t"
                   "jns 3b\n\t"
                   "dec %2\n\t"
                   "jne 1b"
                   : "+&r"(p), "+&r"(q), "+&r"(rounds), "+&r"(i)
                   : "r"(other)
                   : "rax", "rcx", "rsi", "rdi", "r8", "memory", "cc");
}

__attribute__((target("avx2"))) static void gathers(void) {
  float *p = (float *)from;
  uint64_t *q = to, rounds = GATHER_ROUNDS;
  __m256i indices = _mm256_setr_epi32(1, 0, 5, 9, 2, 3, 8, 8);
  const int order[8] = {1, 0, 5, 9, 2, 3, 8, 8};
  printf("loop %d\n", GATHER_ROUNDS);
  line("load", to, 8);
  for (int i = 0; i < 8; i++)
    line("gather", p + order[i], 4);
  line("store", to + 3, 8);
  line("store", p + 70, 4);
  fflush(stdout);
  __asm__ volatile("mov $1, %%r8d\n\t"
                   "jmp 1f\n"
                   "1: mov (%1), %%rax\n\t"
                   "vpcmpeqd %%ymm1, %%ymm1, %%ymm1\n\t"
                   "vgatherdps %%ymm1, (%0,%3,4), %%ymm0\n\t"
                   "mov %%rax, 24(%1)\n\t"
                   "movl $0, 280(%0)\n\t"
                   "add $4, %0\n\t"
                   "add $8, %1\n\t"
                   "imul $1103515245, %%r8d, %%r8d\n\t"
                   "add $12345, %%r8d\n\t"
                   "mov %%r8d, %%ecx\n\t"
                   "shr $30, %%ecx\n\t"
                   "3: dec %%ecx\n\t"
                   "jns 3b\n\t"
                   "dec %2\n\t"
                   "jne 1b\n\t"
                   "vzeroupper"
                   : "+&r"(p), "+&r"(q), "+&r"(rounds)
                   : "x"(indices)
                   : "rax", "rcx", "r8", "xmm0", "xmm1", "memory", "cc");
}

int main(void) {
  strings();
  if (__builtin_cpu_supports("avx2"))
    gathers();
  return 0;
}
