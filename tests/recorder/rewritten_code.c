/* SPDX-License-Identifier: Apache-2.0 */
/* One thread writes code into page after page, in the way of a just-in-time compiler, while another
 * one calls what stands at the end of the same page. Prints how many pages were written right. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGES 2000
#define PAGE_BYTES 4096
#define WRITTEN 256
#define RETURN 0xc3
#define FUNCTIONS_AT 4000
#define FUNCTIONS 64

static uint8_t *pages;
static volatile unsigned page_now;
static volatile int is_over;

struct section {
  uint8_t *end;
};

/* Appends two bytes; the section's address is in a register across the stores. */
void append(struct section **section, unsigned byte);
__asm__(".text\n.balign 32\nappend:\n\t"
        "mov (%rdi), %rcx\n\tmov (%rcx), %rdx\n\tmovb $0x8b, (%rdx)\n\tadd $2, %rdx\n\t"
        "mov %sil, -1(%rdx)\n\tmov %rdx, (%rcx)\n\tret\n");

static void *execute(void *nothing) {
  while (!is_over) {
    uint8_t *function = pages + page_now * PAGE_BYTES + FUNCTIONS_AT + rand() % FUNCTIONS;
    ((void (*)(void))(uintptr_t)function)();
  }
  return nothing;
}

static int is_right(const uint8_t *code, const uint8_t *end) {
  for (int i = 0; i < WRITTEN; i++)
    if (code[2 * i] != 0x8b || code[2 * i + 1] != i)
      return 0;
  return end == code + 2 * WRITTEN;
}

static void *write_pages(void *written) {
  int *right = written;
  for (unsigned page = 0; page < PAGES; page++) {
    page_now = page;
    struct section section, *pointer = &section;
    for (int round = 0; round < 20; round++) {
      section.end = pages + page * PAGE_BYTES;
      for (unsigned i = 0; i < WRITTEN; i++)
        append(&pointer, i);
    }
    *right += is_right(pages + page * PAGE_BYTES, section.end);
  }
  is_over = 1;
  return NULL;
}

int main(void) {
  pages = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(pages, RETURN, PAGES * PAGE_BYTES);
  int right = 0;
  pthread_t writer, caller;
  pthread_create(&caller, NULL, execute, NULL);
  pthread_create(&writer, NULL, write_pages, &right);
  pthread_join(writer, NULL);
  pthread_join(caller, NULL);
  printf("%d\n", right);
  return 0;
}
