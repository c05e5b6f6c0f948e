/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of operations with texts of several kinds; prints how often it passed one. */
#include <fencepost.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

int main(void) {
  char text[300];
  int passed = 0;
  for (int number = 0; number < 3; number++) {
    snprintf(text, sizeof(text), "put %d", number);
    FP_BEGIN(text);
    passed++;
    FP_END();
    passed++;
  }
  memset(text, 'x', sizeof(text));
  text[sizeof(text) - 1] = '\0';
  FP_ACK(text);
  char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages + PAGE, PAGE);
  memcpy(pages + PAGE - 4, "last", 4);
  FP_ACK(pages + PAGE - 4);
  FP_ACK((const char *)8);
  printf("%d\n", passed + 3);
  return 0;
}
