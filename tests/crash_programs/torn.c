/* A pool whose records a power cut can tear: `torn POOL KIND` writes one, `torn POOL KIND check`
 * reads it. */
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 4096 };

struct pair {
  uint64_t data;
  uint64_t valid;
};

static void persist(const void *at) {
  _mm_clflush(at);
  _mm_sfence();
}

static __attribute__((noinline)) void put_pair(void *at) {
  __m128i both = _mm_set_epi64x(1, 7);
  __asm__ volatile("movdqu %1, %0" : "=m"(*(struct pair *)at) : "x"(both)); /* set pair */
}

static __attribute__((noinline)) void put_around_the_caches(struct pair *at) {
  _mm_stream_si64((long long *)&at->data, 7);  /* stream data */
  _mm_stream_si64((long long *)&at->valid, 1); /* stream valid */
  _mm_sfence();
}

static __attribute__((noinline)) void put_ordered(struct pair *at) {
  _mm_stream_si64((long long *)&at->data, 7);
  _mm_sfence();
  _mm_stream_si64((long long *)&at->valid, 1);
  _mm_sfence();
}

static __attribute__((noinline)) void put_late(struct pair *at) {
  _mm_stream_si64((long long *)&at->data, 7); /* unfenced data */
  __asm__ volatile("" ::: "memory");          /* compilers keep the order of the two */
  volatile struct pair *other = at + 32;
  other->valid = 1; /* published */
  persist((const void *)other);
}

static int looks_right(char *pool, const char *kind) {
  struct pair *first = (struct pair *)(pool + 64), *line_end = (struct pair *)(pool + 120);
  if (strcmp(kind, "two_lines") == 0)
    return line_end->valid == 0 || line_end->data == 7;
  if (strcmp(kind, "late") == 0)
    return first[32].valid == 0 || first->data == 7;
  return first->valid == 0 || first->data == 7;
}

int main(int count, char **arguments) {
  const char *kind = arguments[2];
  int file = open(arguments[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, BYTES) != 0 || count <= 3 && pwrite(file, "P", 1, 0) != 1)
    return 3;
  char *pool = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (count > 3) {
    if (pool[0] != 'P')
      return 2;
    return looks_right(pool, kind) ? 0 : (puts("valid without data"), 1);
  }
  if (strcmp(kind, "inside") == 0)
    put_pair(pool + 64);
  else if (strcmp(kind, "two_lines") == 0)
    put_pair(pool + 120);
  else if (strcmp(kind, "streamed") == 0)
    put_around_the_caches((struct pair *)(pool + 64));
  else if (strcmp(kind, "ordered") == 0)
    put_ordered((struct pair *)(pool + 64));
  else
    put_late((struct pair *)(pool + 64));
  _mm_clflush(pool + 64);
  _mm_clflush(pool + 128);
  _mm_sfence();
  return 0;
}
