/* SPDX-License-Identifier: Apache-2.0 */
/* A little of everything that programs do, between ROI markers: sorting through a callback,
 * recursion, jump tables, strings, floating point, allocation. Makes no system calls there. */
#include "case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static int compare(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return a < b ? -1 : a > b;
}

/* Not qsort, which copies: how memory is copied depends on where it lies, and the stack and the
 * heap may lie elsewhere when the program is recorded. */
static void sort(uint64_t *numbers, int count, int (*comes_before)(const void *, const void *)) {
  for (int i = 1; i < count; i++) {
    uint64_t number = numbers[i];
    int at = i;
    for (; at > 0 && comes_before(&number, &numbers[at - 1]) < 0; at--)
      numbers[at] = numbers[at - 1];
    numbers[at] = number;
  }
}

static uint64_t climb(unsigned steps) {
  return steps < 2 ? 1 : climb(steps - 1) + climb(steps - 2);
}

static uint64_t interpret(const char *program) {
  uint64_t value = 1;
  for (; *program != '\0'; program++) {
    switch (*program) {
    case 'a':
      value += 3;
      break;
    case 'b':
      value *= 5;
      break;
    case 'c':
      value ^= value >> 3;
      break;
    case 'd':
      value = value << 7 | value >> 57;
      break;
    case 'e':
      value -= climb(5);
      break;
    default:
      value = ~value;
    }
  }
  return value;
}

int main(void) {
  static uint64_t numbers[500];
  static char text[1000], copy[1000];
  void *first = malloc(100); /* The heap asks the kernel before the region. */
  uint64_t sum = 0;
  double wave = 0;
  for (int i = 0; i < 500; i++)
    numbers[i] = next_random();
  for (int i = 0; i < 999; i++)
    text[i] = (char)('a' + next_random() % 6);
  __asm__ volatile(MARK_BEGIN ::: "memory");
  sort(numbers, 100, compare);
  sum += bsearch(&numbers[77], numbers, 100, sizeof(numbers[0]), compare) != NULL;
  sum += climb(10) + interpret(text);
  memcpy(copy, text, sizeof(copy));
  sum += (uint64_t)memcmp(copy, text, sizeof(copy)) + strlen(copy);
  __asm__ volatile("rep stosb" ::"D"(copy), "c"(700UL), "a"(1) : "memory");
  for (int i = 0; i < 100; i++)
    wave += sin(i * 0.1) / (1 + (double)(numbers[i] >> 60));
  for (int i = 0; i < 20; i++)
    free(malloc((size_t)i * 8));
  __asm__ volatile(MARK_END ::: "memory");
  printf("%ju %.6f %d\n", (uintmax_t)sum, wave, first != NULL);
  return 0;
}
