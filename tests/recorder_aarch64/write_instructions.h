/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to the pool by every kind of store that AArch64 has, and by the C library (writes.c). */
#include <arm_neon.h>
#include <stdatomic.h>

static void plain_stores(void) {
  char *p = piece(512);
  __asm__ volatile("mov x9, #0x1234\n\t"
                   "strb w9, [%0]\n\tstrh w9, [%0, #2]\n\tstr w9, [%0, #4]\n\tstr x9, [%0, #8]\n\t"
                   "stp x9, %0, [%0, #16]\n\tstp w9, w9, [%0, #32]\n\tstnp x9, x9, [%0, #48]\n\t"
                   "mov x10, %0\n\tstr x9, [x10, #64]!\n\tstr x9, [x10], #8\n\tstr x9, [x10]\n\t"
                   "mov x11, #3\n\tstr w9, [%0, x11, lsl #2]\n\tstur x9, [%0, #101]\n\t"
                   "stlr x9, [%0]\n\tadd x10, %0, #131\n\tdc zva, x10\n\tstr x9, [%0, #136]"
                   :
                   : "r"(p)
                   : "x9", "x10", "x11", "memory");
  for (int i = 0; i < 64; i++)
    p[200 + i] = (char)(3 * i);
}

/* Each of them once where it writes, and once where it does not. */
static void atomics(void) {
  char *p = piece(512);
  __asm__ volatile(
      ".arch_extension lse\n\t"
      "mov x9, #5\n\tldadd x9, x10, [%0]\n\tswp x9, x10, [%0, #0]\n\tadd x12, %0, #8\n\t"
      "stset w9, [x12]\n\tldumax x9, x10, [x12]\n\tadd x12, %0, #16\n\t"
      "mov x10, #0\n\tmov x11, #77\n\tldr x10, [x12]\n\tcas x10, x11, [x12]\n\t"
      "mov x10, #1\n\tmov x11, #99\n\tcas x10, x11, [x12]\n\t"
      "ldrb w10, [x12, #1]\n\tadd x13, x12, #1\n\tcasalb w10, w11, [x13]\n\t"
      "mvn w10, w11\n\tcasalb w10, w9, [x13]\n\t"
      "add x12, %0, #32\n\tldp x14, x15, [x12]\n\tmov x16, #6\n\tmov x17, #7\n\t"
      "casp x14, x15, x16, x17, [x12]\n\tmov x14, #123\n\tcasp x14, x15, x16, x17, [x12]\n\t"
      "add x12, %0, #64\n\t1:\n\tldaxr x10, [x12]\n\tadd x10, x10, #3\n\tstlxr w11, x10, [x12]\n\t"
      "cbnz w11, 1b\n\tmov x10, #42\n\tclrex\n\tstxr w11, x10, [x12]\n\t"
      "add x12, %0, #80\n\t2:\n\tldxp x10, x11, [x12]\n\tmov x10, #17\n\t"
      "stxp w13, x10, x11, [x12]\n\tcbnz w13, 2b"
      :
      : "r"(p)
      : "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "cc", "memory");
  atomic_fetch_add((atomic_long *)(void *)(p + 128), 9);
  long expected = 1;
  atomic_compare_exchange_strong((atomic_long *)(void *)(p + 136), &expected, 5);
}

static void vectors(void) {
  char *p = piece(1024);
  uint8x16_t bytes = vdupq_n_u8(0x5a);
  uint32x4x2_t two = {{vdupq_n_u32(1), vdupq_n_u32(2)}};
  uint64x2x3_t three = {{vdupq_n_u64(3), vdupq_n_u64(4), vdupq_n_u64(5)}};
  uint16x8x4_t four = {{vdupq_n_u16(6), vdupq_n_u16(7), vdupq_n_u16(8), vdupq_n_u16(9)}};
  vst1q_u8((uint8_t *)p + 3, bytes);
  vst2q_u32((uint32_t *)(void *)(p + 64), two);
  vst3q_u64((uint64_t *)(void *)(p + 128), three);
  vst4q_u16((uint16_t *)(void *)(p + 192), four);
  vst1q_lane_u32((uint32_t *)(void *)(p + 300), two.val[0], 2);
  vst4q_lane_u16((uint16_t *)(void *)(p + 310), four, 5);
  __asm__ volatile("stp q0, q1, [%0, #320]\n\tstr d0, [%0, #360]\n\tstr h0, [%0, #370]\n\t"
                   "str b0, [%0, #373]\n\tstnp q0, q1, [%0, #384]"
                   :
                   : "r"(p)
                   : "memory");
}

static void library(void) {
  char *p = piece(32768);
  memset(p, 0x77, 20000);
  memcpy(p + 20001, p + 3, 5000);
  memmove(p + 10, p + 5, 9000);
  memset(p + 4096, 0, 8192); /* by DC ZVA */
  strcpy(p + 30000, "a text in the pool");
}

static void write_by_instructions(void) {
  plain_stores();
  atomics();
  vectors();
  library();
}
