/* SPDX-License-Identifier: Apache-2.0 */
/* What a C library and a compiler make of ordinary work: strings, sorting, floating point, vectors,
 * memory of all sizes. Prints what came of it, which depends on nothing outside. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS 2000

static int compare(const void *one, const void *other) {
  uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
  return a < b ? -1 : a > b;
}

int main(void) {
  static uint32_t number[NUMBERS];
  static double real[NUMBERS];
  uint32_t seed = 1;
  double sum = 0;
  for (int i = 0; i < NUMBERS; i++) {
    seed = seed * 1664525 + 1013904223;
    number[i] = seed;
    real[i] = sin((double)seed / 4e9);
  }
  qsort(number, NUMBERS, sizeof(number[0]), compare);
  for (int i = 0; i < NUMBERS; i++)
    sum += real[i] * (number[i] & 1023);
  char *text = NULL;
  size_t length = 0;
  for (int i = 0; i < 200; i++) {
    char word[64];
    int added = snprintf(word, sizeof(word), "%d:%08x:%.3f;", i, number[i * 10], real[i]);
    text = realloc(text, length + (size_t)added + 1);
    memcpy(text + length, word, (size_t)added + 1);
    length += (size_t)added;
  }
  char *copy = malloc(1 << 20);
  memset(copy, 7, 1 << 20);
  memmove(copy + 3, copy, (1 << 20) - 3);
  memcpy(copy + 100, text, length + 1);
  printf("%zu %zu %d %.6f\n", length, strlen(copy + 100), strcmp(copy + 100, text), sum);
  free(copy);
  free(text);
  return 0;
}
