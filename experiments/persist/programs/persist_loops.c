// Store + flush + fence over 1, 8 and 64 lines. Each pair of markers is one point, in the order of
// the nested loops of main: instruction, lines, hot or cold. A point repeats {store to each line;
// flush each line; sfence} on lines of its own: hot ones lie dirty in the first-level cache, cold
// ones in no cache. One repetition on lines that no point measures comes first, so that the code of
// a loop is in the caches: a fetch of it from DRAM may meet a refresh there, which takes as long as
// several repetitions.
#define _GNU_SOURCE
#include "marker.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, LINES_IN_ALL = 256, POINTS = 24 };
enum { POINT_BYTES = LINES_IN_ALL * LINE, ARENA_BYTES = (POINTS + 1) * POINT_BYTES };
#define ARENA_ADDRESS ((void *)0x200000000000UL)

enum instruction { CLFLUSH, CLFLUSHOPT, CLWB, NON_TEMPORAL, INSTRUCTIONS };

static inline void sfence(void) { __asm__ volatile("sfence" ::: "memory"); }
static inline void mfence(void) { __asm__ volatile("mfence" ::: "memory"); }
static inline void clflush(char *line) {
  __asm__ volatile("clflush %0" : "+m"(*(volatile char *)line)::"memory");
}
static inline void clflushopt(char *line) {
  __asm__ volatile(".byte 0x66; clflush %0" : "+m"(*(volatile char *)line)::"memory");
}
static inline void clwb(char *line) {
  __asm__ volatile(".byte 0x66; xsaveopt %0" : "+m"(*(volatile char *)line)::"memory");
}
static inline void store(char *line, uint64_t value) { *(volatile uint64_t *)line = value; }
static inline void store_past_caches(char *line, uint64_t value) {
  for (int word = 0; word < 8; word++)
    __asm__ volatile("movnti %1, %0" : "=m"(*(volatile uint64_t *)(line + 8 * word)) : "r"(value));
}
// A fence does not hold back what follows it in the program, up to a load after mfence: so that the
// last flushes are complete when the point ends.
static inline void end(void) {
  volatile int hot = 0;
  mfence();
  (void)hot;
}

// One function for each instruction, so that nothing but it differs.
#define LOOPS(NAME, STORE, FLUSH)                                                                  \
  static void NAME(char *arena, int lines, int repetitions) {                                      \
    for (int r = 0; r < repetitions; r++) {                                                        \
      char *first = arena + (long)r * lines * LINE;                                                \
      for (int i = 0; i < lines; i++)                                                              \
        STORE(first + i * LINE, r);                                                                \
      for (int i = 0; i < lines; i++)                                                              \
        FLUSH(first + i * LINE);                                                                   \
      sfence();                                                                                    \
    }                                                                                              \
    end();                                                                                         \
  }
static inline void nothing(char *line) { (void)line; }
LOOPS(with_clflush, store, clflush)
LOOPS(with_clflushopt, store, clflushopt)
LOOPS(with_clwb, store, clwb)
LOOPS(with_non_temporal, store_past_caches, nothing)

static void prepare(char *arena, int is_hot) {
  for (int i = 0; i < LINES_IN_ALL; i++) {
    store(arena + i * LINE, i);
    clflush(arena + i * LINE);
  }
  if (is_hot)
    for (int i = 0; i < LINES_IN_ALL; i++)
      store(arena + i * LINE, i);
  mfence();
}

int main(void) {
  static void (*const loops[INSTRUCTIONS])(char *, int, int) = {with_clflush, with_clflushopt,
                                                                with_clwb, with_non_temporal};
  static const int lines[] = {1, 8, 64};
  char *arena = mmap(ARENA_ADDRESS, ARENA_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (arena != ARENA_ADDRESS) {
    perror("mmap");
    return 1;
  }
  char *warm_up = arena + POINTS * POINT_BYTES;
  for (int instruction = 0; instruction < INSTRUCTIONS; instruction++)
    for (int size = 0; size < 3; size++)
      for (int is_hot = 1; is_hot >= 0; is_hot--) {
        int repetitions = lines[size] == 1 ? 64 : LINES_IN_ALL / lines[size];
        loops[instruction](warm_up, lines[size], 1);
        prepare(arena, is_hot);
        MK_ROI_BEGIN();
        loops[instruction](arena, lines[size], repetitions);
        MK_ROI_END();
        arena += POINT_BYTES; // nothing that an earlier point has left in any buffer
      }
  return 0;
}
