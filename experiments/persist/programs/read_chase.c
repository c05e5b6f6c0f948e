// A chain of dependent reads of lines that lie in no cache: in the order of their addresses, then
// one line of each 256-byte block in random order. Each pair of markers is one point.
#define _GNU_SOURCE
#include "marker.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64, BLOCK = 256, BLOCKS = 512, ARENA_BYTES = BLOCKS * BLOCK };
#define ARENA_ADDRESS ((void *)0x200000000000UL)

// Links `count` lines that lie `stride` apart into a chain in that order, and takes them out of all
// caches.
static void link_lines(char *arena, const int *order, int count, int stride) {
  for (int i = 0; i < count; i++) {
    char *next = i + 1 < count ? arena + (long)order[i + 1] * stride : NULL;
    *(char *volatile *)(arena + (long)order[i] * stride) = next;
  }
  for (int i = 0; i < count; i++)
    __asm__ volatile("clflush %0" : "+m"(*(volatile char *)(arena + (long)order[i] * stride)));
  __asm__ volatile("mfence" ::: "memory");
}

static void chase(char *first) {
  MK_ROI_BEGIN();
  for (char *line = first; line; line = *(char *volatile *)line)
    ;
  MK_ROI_END();
}

int main(void) {
  static int order[ARENA_BYTES / LINE];
  char *arena = mmap(ARENA_ADDRESS, ARENA_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (arena != ARENA_ADDRESS) {
    perror("mmap");
    return 1;
  }
  for (int i = 0; i < ARENA_BYTES / LINE; i++)
    order[i] = i;
  link_lines(arena, order, ARENA_BYTES / LINE, LINE);
  chase(arena);

  uint64_t state = 1; // xorshift64
  for (int i = BLOCKS - 1; i > 0; i--) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    int other = (int)(state % (uint64_t)(i + 1)), kept = order[i];
    order[i] = order[other], order[other] = kept;
  }
  link_lines(arena, order, BLOCKS, BLOCK);
  chase(arena + (long)order[0] * BLOCK);
  return 0;
}
