/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to the pool by every kind of store that x86-64 has (writes.c). */
#include <immintrin.h>

static void plain_stores(void) {
  char *p = piece(64);
  __asm__ volatile("movb $0x11, 1(%0)\n\t"
                   "movw $0x2222, 3(%0)\n\t"
                   "movl $0x33333333, 7(%0)\n\t"
                   "movq %1, 13(%0)\n\t"
                   "movq %1, 60(%0)\n\t" /* over the end of a line */
                   "addl $5, 24(%0)\n\t"
                   "notq 32(%0)\n\t"
                   "incb 45(%0)\n\t"
                   "sete 46(%0)" ::"r"(p),
                   "r"(0x4444444444444444ul)
                   : "memory", "cc");
  /* Registers that change by the write itself. */
  __asm__ volatile("mov %0, (%0)\n\t"
                   "xchg %0, 8(%0)\n\t" ::"a"(piece(16))
                   : "memory");
}

static void atomics(void) {
  uint64_t *p = piece(128);
  uint64_t one = 1, expected = 7;
  __asm__ volatile("lock xaddq %0, (%1)" : "+r"(one) : "r"(p) : "memory", "cc");
  __asm__ volatile("lock xaddl %k0, 8(%1)" : "+r"(one) : "r"(p) : "memory", "cc");
  p[2] = 7;
  __atomic_compare_exchange_n(&p[2], &expected, 99, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  __atomic_compare_exchange_n(&p[2], &expected, 98, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  __atomic_exchange_n(&p[3], 0x123456789abcdef0, __ATOMIC_SEQ_CST);
  __asm__ volatile("lock btsq $5, 32(%0)" ::"r"(p) : "memory", "cc");
  __asm__ volatile("lock cmpxchg16b 64(%0)" ::"r"(p), "a"(p[8]), "d"(p[9]), "b"(3ul), "c"(4ul)
                   : "memory", "cc");
}

static void strings(void) {
  char *p = piece(4096), *to = p, *from = p + 1000;
  size_t count = 100;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0x5a) : "memory");
  to = from, count = 25;
  __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(0x0123456789abcdef) : "memory");
  to = p + 2000, count = 50;
  __asm__ volatile("rep movsl\n\tmovb $0x77, (%0)\n\tstosq\n\tmovsw"
                   : "+D"(to), "+S"(from), "+c"(count)
                   :
                   : "memory");
  to = p + 3000, count = 40;
  __asm__ volatile("std\n\trep stosl\n\tcld" : "+D"(to), "+c"(count) : "a"(0x61626364) : "memory");
  count = 0;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : : "memory");
  to = piece(200000), count = 200000; /* more than one value may have */
  __asm__ volatile("rep stosb\n\tmovb $0x22, -5(%0)"
                   : "+D"(to), "+c"(count)
                   : "a"(0x3c)
                   : "memory");
}

/* A stack in the pool: pushes, calls and what they save. */
static void stack_in_pool(void) {
  char *top = (char *)piece(4096) + 4096;
  __asm__ volatile("mov %%rsp, %%r12\n\t"
                   "mov %0, %%rsp\n\t"
                   "push $0x1234567\n\t"
                   "pushq %%r12\n\t"
                   "call 1f\n\t"
                   "jmp 2f\n\t"
                   "1: pushfq\n\t"
                   "popq -64(%%rsp)\n\t"
                   "enter $16, $0\n\t"
                   "leave\n\t"
                   "ret\n\t"
                   "2: lea 1b(%%rip), %%rax\n\t"
                   "call *%%rax\n\t"
                   "mov %%r12, %%rsp" ::"r"(top)
                   : "rax", "r12", "memory", "cc");
}

static void sse(void) {
  char *p = piece(512);
  __m128i value = _mm_set1_epi32(0x0badcafe);
  _mm_storeu_si128((__m128i *)(p + 3), value);
  _mm_stream_si128((__m128i *)(p + 64), value);
  _mm_stream_si64((long long *)(p + 128), 0x1122334455667788);
  _mm_stream_si32((int *)(p + 140), 0x778899aa);
  _mm_storeh_pd((double *)(p + 160), _mm_set_pd(3.5, 4.5));
  _mm_maskmoveu_si128(value, _mm_set_epi8(-1, 0, 0, -1, 0, 0, 0, 0, -1, -1, 0, 0, 0, 0, 0, -1),
                      p + 200);
  _mm_maskmoveu_si128(value, _mm_setzero_si128(), p + 240);
  _mm_sfence();
  __asm__ volatile("fldpi\n\tfstpt 300(%0)\n\tfld1\n\tfstpl 320(%0)\n\tfnstcw 340(%0)" ::"r"(p)
                   : "memory");
}

__attribute__((target("avx2"))) static void avx2(void) {
  char *p = piece(512);
  __m256i value = _mm256_set1_epi64x(0x0102030405060708);
  _mm256_storeu_si256((__m256i *)(p + 5), value);
  _mm256_stream_si256((__m256i *)(p + 64), value);
  _mm256_maskstore_epi32((int *)(p + 128), _mm256_set_epi32(-1, 0, -1, 0, 0, -1, 0, -1), value);
  _mm256_maskstore_epi64((long long *)(p + 192), _mm256_set_epi64x(0, -1, 0, -1), value);
  _mm256_maskstore_epi32((int *)(p + 256), _mm256_setzero_si256(), value);
  _mm256_maskstore_ps((float *)(p + 320), _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, -1),
                      _mm256_set1_ps(2.5f));
  /* Lanes that are off may reach over the mapping's end. */
  _mm256_maskstore_epi32((int *)(pool + POOL_BYTES - 4), _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, -1),
                         value);
}

__attribute__((target("avx512f,avx512bw"))) static void avx512(void) {
  char *p = piece(2048);
  __m512i value = _mm512_set1_epi32(0x5eed5eed);
  _mm512_storeu_si512(p + 9, value);
  _mm512_stream_si512((__m512i *)(p + 128), value);
  _mm512_mask_storeu_epi32(p + 192, 0x8421, value);
  _mm512_mask_storeu_epi8(p + 300, 0xf00000000000000f, value);
  _mm512_mask_storeu_epi32(p + 448, 0, value);
  _mm512_mask_compressstoreu_epi32(p + 512, 0x0ff0, value);
  __m512i index = _mm512_set_epi32(0, 3, 9, 27, 1, 4, 16, 64, 2, 8, 32, 128, 5, 25, 125, 63);
  _mm512_i32scatter_epi32(p + 640, index, value, 4);
  _mm512_mask_i32scatter_epi32(p + 1300, 0x1248, index, value, 4);
}

static void write_by_instructions(void) {
  plain_stores();
  atomics();
  strings();
  stack_in_pool();
  sse();
  if (__builtin_cpu_supports("avx2"))
    avx2();
  if (__builtin_cpu_supports("avx512bw"))
    avx512();
}
