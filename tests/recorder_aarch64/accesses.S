/* SPDX-License-Identifier: Apache-2.0 */
/* One access of each kind, at places of `data` that the test knows. Base registers are known before
 * the block in the first part, and computed in it in the second. */
  .arch armv8.5-a+memtag+lse
  .global _start
  .text
_start:
  adrp x0, data
  add x0, x0, :lo12:data
  mov x1, #2
  mov w2, #-1
  b 1f
1:
  /* plain, unscaled, indexed */
  ldrb w3, [x0]
  ldrsh x3, [x0, #2]
  ldr w3, [x0, #4]
  ldr x3, [x0, #8]
  ldursw x3, [x0, #-4]
  str xzr, [x0, x1, lsl #3]
  ldr x3, [x0, w2, sxtw #3]
  ldr x3, [x0, x1]
  ldr q0, [x0, #32]
  str h0, [x0, #64]
  /* written back */
  mov x4, x0
  ldr x3, [x4], #16
  ldr x3, [x4, #16]!
  stp x3, x3, [x4, #-8]
  ldp w3, w5, [x4, #8]
  ldp q0, q1, [x4, #32]
  stnp x3, x3, [x4, #16]
  ldpsw x3, x5, [x4]
  stp x3, x3, [x4, #-32]!
  ldr x6, [x4]
  /* many elements */
  ld1 {v0.16b}, [x0]
  ld1 {v0.8b, v1.8b, v2.8b}, [x0]
  ld2 {v0.4s, v1.4s}, [x0]
  st3 {v0.2d, v1.2d, v2.2d}, [x0]
  ld4 {v0.8h, v1.8h, v2.8h, v3.8h}, [x0]
  st1 {v0.s}[1], [x0]
  ld2 {v0.b, v1.b}[3], [x0]
  ld1r {v0.2d}, [x0]
  ld4r {v0.4h, v1.4h, v2.4h, v3.4h}, [x0]
  add x7, x0, #256
  ld1 {v0.16b}, [x7], #16
  str q0, [x7]
  /* exclusive and ordered */
  ldxr x3, [x0]
  stxr w5, x3, [x0]
  ldaxp x3, x5, [x0]
  stlxp w6, x3, x5, [x0]
  clrex
  stxrb w5, w3, [x0, #0] /* fails */
  ldar w3, [x0]
  stlrh w3, [x0]
  ldapr x3, [x0]
  /* in one step */
  ldadd x3, x5, [x0]
  swpalb w3, w5, [x0]
  stset w3, [x0]
  cas x3, x5, [x0]
  mov x10, #0
  mov x11, #0
  casp x10, x11, x10, x11, [x0]
  /* caches */
  prfm pldl1keep, [x0, #128]
  prfm pldl1keep, [x0, x1, lsl #3]
  dc cvac, x0
  dc cvau, x0
  dc civac, x0
  dc cvap, x0
  dc cvadp, x0
  add x8, x0, #0x51
  dc zva, x8
  ic ivau, x0
  dsb ish
  isb
  /* relative to the program counter */
  ldr x3, literal
  ldr w3, literal
  prfm pldl1keep, literal
  b 2f
2: /* the base is loaded, so nothing is known of it at the block's start */
  ldr x9, pointer
  ldr x3, [x9]
  ldr x3, [x9, #8]
  add x9, x9, #64
  str x3, [x9, x1, lsl #3]
  dc cvac, x9
  stp x29, x30, [sp, #-16]!
  ldp x29, x30, [sp], #16
  mov x8, #93
  mov x0, #0
  svc #0
  .balign 8
literal:
  .quad 1
pointer:
  .quad data
  .bss
  .balign 4096
  .space 4096
data:
  .space 4096
