/* SPDX-License-Identifier: Apache-2.0 */
/* AVX2 and AVX-512 accesses, as far as this processor has them: whole vectors, gathers and scatters
 * with elements masked off. */
#include "case.h"

#include <immintrin.h>
#include <string.h>

static float floats[1024] __attribute__((aligned(64)));
static double doubles[1024] __attribute__((aligned(64)));

__attribute__((target("avx2"))) static void avx2(void) {
  case_begins("256-bit accesses");
  expect("load", floats + 8, 32);
  expect("store", floats + 16, 32);
  expect("store", floats + 24, 32);
  __asm__ volatile(MARK_BEGIN "vmovups 32(%0), %%ymm1\n\tvmovups %%ymm1, 64(%0)\n\t"
                              "vmovntps %%ymm1, 96(%0)\n\tvzeroupper" MARK_END ::"r"(floats)
                   : "xmm1", "memory");
  int index[8] = {0, 100, -1, 3, 7, 900, 5, 6};
  int mask[8] = {-1, -1, -1, 0, -1, -1, 0, -1};
  __m256i indices = _mm256_loadu_si256((const __m256i *)index);
  __m256i masks = _mm256_loadu_si256((const __m256i *)mask);
  __m256 target = _mm256_setzero_ps();
  case_begins("gather of 8 floats");
  for (int i = 0; i < 8; i++)
    expect("gather", mask[i] != 0 ? floats + 1 + index[i] : NULL, 4);
  expect("load", floats + 4, 4);
  __asm__ volatile(MARK_BEGIN "vgatherdps %1, 4(%3,%2,4), %0\n\tmov 16(%3), %%eax" MARK_END
                   : "+x"(target), "+x"(masks)
                   : "x"(indices), "r"(floats)
                   : "rax", "memory");
  int64_t wide[4] = {9, 0, 500, 2};
  int64_t wide_mask[4] = {-1, -1, 0, -1};
  indices = _mm256_loadu_si256((const __m256i *)wide);
  masks = _mm256_loadu_si256((const __m256i *)wide_mask);
  __m256d double_target = _mm256_setzero_pd();
  case_begins("gather of 4 doubles with wide indices");
  for (int i = 0; i < 4; i++)
    expect("gather", wide_mask[i] != 0 ? doubles + wide[i] : NULL, 8);
  __asm__ volatile(MARK_BEGIN "vgatherqpd %1, (%3,%2,8), %0" MARK_END
                   : "+x"(double_target), "+x"(masks)
                   : "x"(indices), "r"(doubles)
                   : "memory");
}

__attribute__((target("avx512f"))) static void avx512(void) {
  case_begins("512-bit accesses");
  expect("load", floats + 16, 64);
  expect("store", floats + 32, 64);
  expect("store", floats + 48, 64);
  __asm__ volatile(MARK_BEGIN "vmovups 64(%0), %%zmm17\n\tvmovups %%zmm17, 128(%0)\n\t"
                              "vmovntps %%zmm17, 192(%0)" MARK_END ::"r"(floats)
                   : "memory");
  int index[16];
  for (int i = 0; i < 16; i++)
    index[i] = 1000 - i * 61;
  __m512i indices = _mm512_loadu_si512(index);
  __m512 data = _mm512_setzero_ps();
  unsigned mask = 0xa5c3;
  case_begins("gather of 16 floats");
  for (int i = 0; i < 16; i++)
    expect("gather", (mask >> i & 1) != 0 ? floats + index[i] : NULL, 4);
  __asm__ volatile("kmovw %1, %%k3\n\t" MARK_BEGIN "vgatherdps (%3,%2,4), %0%{%%k3%}" MARK_END
                   : "+v"(data)
                   : "r"(mask), "v"(indices), "r"(floats)
                   : "memory");
  case_begins("scatter of 16 floats");
  for (int i = 0; i < 16; i++)
    expect("scatter", (mask >> i & 1) != 0 ? floats + index[i] + 2 : NULL, 4);
  __asm__ volatile("kmovw %1, %%k2\n\t" MARK_BEGIN
                   "vscatterdps %0, 8(%3,%2,4)%{%%k2%}" MARK_END ::"v"(data),
                   "r"(mask), "v"(indices), "r"(floats)
                   : "memory");
  int64_t wide[8] = {3, 1, 4, 15, 9, 2, 6, 5};
  indices = _mm512_loadu_si512(wide);
  case_begins("scatter of 8 doubles with wide indices");
  for (int i = 0; i < 8; i++)
    expect("scatter", (mask >> i & 1) != 0 ? doubles + wide[i] : NULL, 8);
  __asm__ volatile("kmovw %1, %%k1\n\t" MARK_BEGIN
                   "vscatterqpd %0, (%3,%2,8)%{%%k1%}" MARK_END ::"v"(data),
                   "r"(mask), "v"(indices), "r"(doubles)
                   : "memory");
}

int main(void) {
  memset(floats, 0, sizeof(floats));
  if (__builtin_cpu_supports("avx2"))
    avx2();
  if (__builtin_cpu_supports("avx512f"))
    avx512();
  return 0;
}
