/* SPDX-License-Identifier: Apache-2.0 */
/* Every static block of the program, once: found by its address and bytes, named by a dense id. The
 * instrumentation interns blocks here, the encoder looks them up, and their descriptions go to the
 * record before the first frame of a trace that names them. */
#ifndef CODE_TABLE_H
#define CODE_TABLE_H

#include "record_format.h"

#include <stdbool.h>
#include <stdint.h>

/* How the encoder gets a slot's value from the raw words of an execution: word `raw` +
 * `displacement`. Word 0 is the block's id, so an address that never changes is a displacement from
 * it. */
struct slot {
  uint16_t instruction;
  uint8_t kind;   /* enum slot_kind */
  uint16_t bytes; /* of the access */
  uint16_t raw;
  int64_t displacement;
};

/* More than a block can have (block_plan.c). */
#define BLOCK_SLOTS_MAX 4096u

enum block_flags {
  BLOCK_HAS_PAUSE = 1,  /* a `pause` */
  BLOCK_HAS_MARKER = 2, /* begins or ends a region of interest */
  BLOCK_READS = 4,      /* has a slot that reads, an update's too */
  BLOCK_STORES = 8,     /* has a slot that writes (slot_writes) */
};

struct block {
  uint64_t address;
  uint32_t id;
  uint32_t code_version;
  uint16_t instructions;
  uint16_t raw_words; /* of one execution, the id included */
  uint16_t slots;
  uint16_t flags;
  uint32_t code_bytes;
  const uint8_t *lengths; /* of the instructions */
  const uint8_t *code;
  const struct slot *slot;
};

void code_table_init(void);
void code_table_exit(void);
/* In a forked child: whoever held a lock is gone, and none of the blocks is in its record yet. */
void code_table_after_fork(void);
/* Where the process was killed: whoever held a lock is gone, and the last frame was written. */
void code_table_continue_killed(void);

/* The id that a block has in the record: in a child's they count from its first image on. */
uint32_t code_table_record_id(uint32_t id);

/* The id of the block with this address and these bytes; a new one where there is none yet.
 * `block`'s id and code version are ignored and what it points to is copied. 0 where the record is
 * full. */
uint32_t code_table_intern(const struct block *block);

/* Whether raw word `word` of an execution belongs to one of its first `instructions` instructions.
 */
bool block_word_is_reached(const struct block *block, uint32_t word, uint32_t instructions);

/* Whether the slot belongs to those that the record's values are counted by: what writes, and the
 * first of a string_destination pair (its second must be passed over). */
static inline bool slot_writes(const struct slot *slot) {
  return slot->kind == SLOT_STORE || slot->kind == SLOT_UPDATE || slot->kind == SLOT_SCATTER ||
         slot->kind == SLOT_STRING_DESTINATION;
}

/* How many of them the block has. */
uint16_t block_writes(const struct block *block);

/* The block with an id that was given out by this image. */
const struct block *code_table_get(uint32_t id);

/* Writes every block that no CODE frame has described yet. */
void code_table_write_pending(void);

#endif
