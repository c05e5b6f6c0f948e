/* SPDX-License-Identifier: Apache-2.0 */
/* Makes functions in a page of code and calls each before it makes the next: every write goes to a
 * page that code is executed from, in the middle of a block. Prints where the page is, how many
 * functions there were, and the sum of what they returned. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define FUNCTIONS 200
#define FUNCTION_BYTES 16

/* mov $0, %eax; ret */
static const uint8_t code[8] = {0xb8, 0, 0, 0, 0, 0xc3};

/* The two writes are within a block, which reads and writes at unrelated places around them. */
__attribute__((noinline)) static uint64_t make(uint8_t *at, uint64_t value, uint64_t *left,
                                               uint64_t *right) {
  uint64_t first, second = 0;
  __asm__ volatile("mov (%3), %0\n\tmov %6, (%2)\n\tadd (%4), %0\n\tmov %k5, 1(%2)\n\t"
                   "add %0, (%3)\n\tadd (%4), %1\n\tadd %1, (%4)"
                   : "=&r"(first), "+r"(second)
                   : "r"(at), "r"(left), "r"(right), "r"(value), "r"(*(const uint64_t *)code)
                   : "memory", "cc");
  return first + second;
}

int main(void) {
  uint8_t *page = mmap(NULL, FUNCTIONS * FUNCTION_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint64_t left = 1, right = 1, sum = 0, mixed = 0;
  if (page == MAP_FAILED)
    return 1;
  for (uint64_t i = 0; i < FUNCTIONS; i++) {
    uint8_t *at = page + i * FUNCTION_BYTES;
    int (*function)(void);
    mixed ^= make(at, i, &left, &right);
    memcpy(&function, &at, sizeof(function));
    sum += (uint64_t)function();
  }
  printf("page %ju\nfunctions %d\nsum %ju\nmixed %ju\n", (uintmax_t)(uintptr_t)page, FUNCTIONS,
         (uintmax_t)sum, (uintmax_t)mixed);
  return 0;
}
