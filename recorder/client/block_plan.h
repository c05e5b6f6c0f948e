/* SPDX-License-Identifier: Apache-2.0 */
/* Decides, for one block, which slots it has and what instrumented code has to store for them. Few
 * addresses need a store of their own: a constant one needs none, and operands that differ by a
 * constant (stack slots, fields of a structure, neighbours in an array) share the word of the
 * first. */
#ifndef BLOCK_PLAN_H
#define BLOCK_PLAN_H

#include "code_table.h"
#include "dr_api.h"
#include "register_set.h"

enum raw_source_how {
  RAW_REGISTER,       /* the register's value before the instruction */
  RAW_REGISTER_AFTER, /* … and after it */
  RAW_ADDRESS,        /* the effective address of the operand */
  RAW_MEMORY,         /* what the operand in memory holds */
  RAW_ELEMENTS,       /* the addresses of a gather's or scatter's elements, one word each */
};

struct raw_source {
  uint16_t instruction;
  uint16_t word; /* of the execution, from 1 */
  uint8_t how;
  reg_id_t reg;
  opnd_t operand;
};

struct block_plan {
  uint32_t id; /* in the code table; 0 where the block cannot be recorded, or is not to be */
  uint16_t instructions;
  uint16_t raw_words;
  uint32_t sources;
  struct raw_source *source;   /* ordered by instruction */
  register_set used_registers; /* those that the block's code names */

  /* Where the insertion stands (instrument.c). */
  uint32_t next_instruction;
  uint32_t next_source;
  reg_id_t position_register; /* holds the position through the whole block, or DR_REG_NULL */
};

void block_plans_init(void);
void block_plans_exit(void);
void block_plans_after_fork(void);

/* The plan of a block, its code interned in the code table; block_plan_free ends it. */
struct block_plan *block_plan_create(void *drcontext, instrlist_t *block);
void block_plan_free(void *drcontext, struct block_plan *plan);

/* Ends a block before this instruction, NULL for none; the next one begins there. */
void block_plan_cut(void *drcontext, instrlist_t *block, instr_t *from);

#endif
