/* SPDX-License-Identifier: Apache-2.0 */
/* What the recorder has to know of an A64 instruction: which memory it accesses, and which
 * registers it may change. SVE, SME, pointer authentication and memory tags are left out: the
 * processor that programs are recorded on has none of them. */
#ifndef A64_H
#define A64_H

#include "record_format.h"

#include <stdbool.h>
#include <stdint.h>

/* Registers by number: 31 is the stack pointer, or where an instruction has no base, none. */
#define A64_STACK_POINTER 31u
#define A64_LINK 30u
#define A64_REGISTERS 32u
#define A64_NONE 32u

/* What DC ZVA zeroes, by DCZID_EL0 of that processor (check.c). */
#define A64_ZEROED_BYTES 64u

enum a64_extension { A64_UXTW = 2, A64_UXTX = 3, A64_SXTW = 6, A64_SXTX = 7 };

/* The one contiguous piece of memory that an instruction accesses: at base + displacement, or at
 * base + index extended and shifted. */
struct a64_access {
  enum slot_kind kind;
  uint16_t bytes;
  uint8_t base;      /* A64_NONE: `displacement` is the address less the instruction's */
  uint8_t index;     /* or A64_NONE */
  uint8_t extension; /* enum a64_extension */
  uint8_t shift;
  bool is_aligned;   /* down to its size */
  bool is_exclusive; /* a store that may fail */
  int64_t displacement;
};

/* False where it accesses none. */
bool a64_access_of(uint32_t word, struct a64_access *access);

/* Whether it reads and writes memory in one step, as other threads see it. */
bool a64_is_atomic_update(uint32_t word);

/* A bit for each register that it may change. */
uint32_t a64_changed_registers(uint32_t word);

/* Where a register's new value is another's old one plus a constant. */
struct a64_sum {
  uint8_t target, source; /* A64_NONE: the constant is to be added to the instruction's address */
  bool from_page;         /* … rounded down to 4 KiB */
  int64_t constant;
};
bool a64_sum_of(uint32_t word, struct a64_sum *sum);

/* Whether control may go elsewhere behind it than to the next instruction, or to the kernel. */
bool a64_ends_block(uint32_t word);

/* DC CVAP and DC CVADP, which old QEMUs refuse to programs, and DC CVAC in their stead. */
bool a64_is_clean_to_persistence(uint32_t word);
uint32_t a64_as_clean_to_coherence(uint32_t word);

/* The register that MSR TPIDR_EL0 sets the thread pointer from; A64_NONE where it is another. */
unsigned a64_thread_pointer_source(uint32_t word);

bool a64_is_yield(uint32_t word);

/* Whether it marks a region of interest: movz xzr, #0x5nnn, lsl #48. */
bool a64_is_marker(uint32_t word);

#endif
