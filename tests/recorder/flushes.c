/* SPDX-License-Identifier: Apache-2.0 */
/* Cache-line flushes, non-temporal stores and prefetches, as far as this processor has them. */
#include "case.h"

#include <cpuid.h>
#include <immintrin.h>

static char lines[8][64] __attribute__((aligned(64)));

static int has_leaf7_ebx(unsigned bit) {
  unsigned a, b = 0, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> bit & 1) != 0;
}

int main(void) {
  char *p = lines[1];
  case_begins("clflush");
  expect("flush", p, 64);
  expect("flush", p + 64, 64);
  expect("flush", p + 70, 64);
  __asm__ volatile(MARK_BEGIN "clflush (%0)\n\tadd $64, %0\n\tclflush (%0)\n\tclflush 6(%0)\n\t"
                              "sfence\n\tmfence\n\tlfence" MARK_END
                   : "+r"(p)
                   :
                   : "memory", "cc");
  p = lines[2];
  if (has_leaf7_ebx(23)) {
    case_begins("clflushopt");
    expect("flush", p, 64);
    expect("flush", p + 3 * 64, 64);
    __asm__ volatile(MARK_BEGIN
                     "clflushopt (%0)\n\tclflushopt 128(%0,%1,1)\n\tsfence" MARK_END ::"r"(p),
                     "r"(64UL)
                     : "memory");
  }
  if (has_leaf7_ebx(24)) {
    case_begins("clwb");
    expect("flush", p, 64);
    expect("flush", &lines[5], 64);
    __asm__ volatile(MARK_BEGIN "clwb (%0)\n\tclwb %1\n\tsfence" MARK_END ::"r"(p), "m"(lines[5])
                     : "memory");
  }
  case_begins("non-temporal stores");
  expect("store", p, 4);
  expect("store", p + 8, 8);
  expect("store", p + 16, 16);
  expect("store", p + 32, 16);
  __asm__ volatile(MARK_BEGIN "movnti %%eax, (%0)\n\tmovnti %%rax, 8(%0)\n\t"
                              "movntdq %%xmm0, 16(%0)\n\tmovntps %%xmm0, 32(%0)" MARK_END ::"r"(p)
                   : "memory");
  case_begins("prefetches");
  expect("prefetch", p, 1);
  expect("prefetch", p + 64, 1);
  __asm__ volatile(MARK_BEGIN "prefetcht0 (%0)\n\tprefetchnta 64(%0)" MARK_END ::"r"(p));
  return 0;
}
