/* SPDX-License-Identifier: Apache-2.0 */
/* What each instruction of a block takes its results from: registers and flags by name, memory by
 * the block's slots. Decoded once for each block that may be part of a loop that waits. */
#ifndef BLOCK_FLOW_H
#define BLOCK_FLOW_H

#include "arena.h"
#include "code_table.h"

#include <stdint.h>

/* Places that hold values: general-purpose and vector registers, in the order that the recorder
 * gives them, and the flags. */
#define FLOW_FLAGS 63u
#define FLOW_REGISTERS 64u

enum flow_kind {
  FLOW_COMPUTES,    /* every result is made of every input */
  FLOW_COPIES,      /* one input, one result, and they are equal */
  FLOW_CLEARS,      /* the result does not depend on the input (xor of a register with itself) */
  FLOW_READS_CLOCK, /* the result is another one each time (rdtsc, a system call) */
  FLOW_GETS_OLD,    /* registers get what memory held before (xchg, xadd, cmpxchg) */
};

struct flow_instruction {
  uint64_t reads;    /* a bit for each place; registers that only make up addresses are left out */
  uint64_t replaces; /* places that it overwrites as a whole */
  uint64_t changes;  /* places that it changes in part, or not always */
  uint16_t first_slot, slots;
  uint8_t kind;
  bool is_branch; /* where control goes next depends on its inputs */
};

struct block_flow {
  uint32_t instructions;
  bool is_opaque; /* has an instruction whose effects these fields cannot say */
  struct flow_instruction instruction[];
};

/* The flow of a block's instructions, allocated in `arena`. The recorder has it: it decodes them.
 */
struct block_flow *block_flow_create(struct arena *arena, const struct block *block);

#endif
