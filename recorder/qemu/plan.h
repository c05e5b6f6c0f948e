/* SPDX-License-Identifier: Apache-2.0 */
/* Decides, for one block, which slots it has and what has to be kept for them, and when: most
 * addresses follow from registers as they are before the block's first instruction, and
 * instructions in it that add constants to them. Only where a base register gets another value in
 * the block, its value is taken right before the instruction that accesses memory. */
#ifndef PLAN_H
#define PLAN_H

#include "a64.h"
#include "code_table.h"

#include <stdbool.h>
#include <stdint.h>

/* As many as QEMU translates at a time (TCG_MAX_INSNS). */
#define PLAN_INSTRUCTIONS_MAX 512u

/* A word of an execution: base + index, extended and shifted, less `cleared` low bits. */
struct plan_source {
  uint16_t word;
  uint8_t base;
  uint8_t index; /* or A64_NONE */
  uint8_t extension;
  uint8_t shift;
  uint8_t cleared;
};

/* The sources that are taken before one instruction of the block. */
struct plan_capture {
  const struct plan *plan;
  uint16_t instruction;
  uint16_t sources;
  uint32_t registers; /* a bit for each that they need */
  const struct plan_source *source;
};

struct plan {
  uint64_t address;
  uint32_t id;
  uint16_t raw_words, instructions;
  uint16_t captures;      /* the first one before the first instruction, always there */
  bool is_special;        /* any of what follows: */
  bool may_be_handler;    /* a signal's handler begins here */
  bool may_be_second_try; /* of an instruction that the engine executes alone */
  uint8_t region;         /* a function begins that begins (1) or ends (2) the region, or both */
  const struct function *function; /* a synchronisation function begins here */
  struct plan_capture capture[];
};

void plans_init(void);
/* In a forked child. */
void plans_after_fork(void);

/* The plan of the block of these words; NULL where it cannot be recorded. */
struct plan *plan_of(uint64_t address, const uint32_t *word, uint32_t words);

/* The slot of an instruction of the block, of which none has more than one; NULL where it has none.
 */
const struct slot *plan_slot(const struct plan *plan, uint32_t instruction);

/* The address in that slot of the execution that ends at `position`. */
static inline uint64_t plan_slot_address(const struct plan *plan, const struct slot *slot,
                                         const uint64_t *position) {
  return position[slot->raw - plan->raw_words] + (uint64_t)slot->displacement;
}

/* Calls `visit` for each plan of a block that begins at the address. */
void plans_at(uint64_t address, void (*visit)(struct plan *plan));

#endif
