/* SPDX-License-Identifier: Apache-2.0 */
/* With another thread, copies from where it has just read to a page that faults, and stores on. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char *page;

static void open_page(int number) {
  (void)number;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void *nothing(void *argument) { return argument; }

int main(void) {
  pthread_t other;
  char *text = malloc(64);
  strcpy(text, "copied");
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  signal(SIGSEGV, open_page);
  pthread_create(&other, NULL, nothing, NULL);
  pthread_join(other, NULL);
  char *from = text, *to = page;
  size_t bytes = 7;
  __asm__ volatile("mov (%%rsi), %%al\n\trep movsb"
                   : "+S"(from), "+D"(to), "+c"(bytes)::"rax", "memory");
  strcpy(text, "stored on");
  puts(page);
  return 0;
}
