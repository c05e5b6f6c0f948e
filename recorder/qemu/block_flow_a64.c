/* SPDX-License-Identifier: Apache-2.0 */
/* Places are x0 to x30, then the vector registers, then the flags; the stack pointer is left out:
 * where a loop's addresses repeat, it does. */
#include "block_flow.h"

#include "a64.h"
#include "a64_fields.h"

#include <string.h>

#define FIRST_VECTOR 31u
#define RD(word) ((word) & 31)
#define RA(word) ((word) >> 10 & 31)

static uint64_t general(uint32_t number) { return number >= 31 ? 0 : (uint64_t)1 << number; }
static uint64_t vector(uint32_t number) { return (uint64_t)1 << (FIRST_VECTOR + number); }
static uint64_t flags(bool are_used) { return are_used ? (uint64_t)1 << FLOW_FLAGS : 0; }

/* `count` vector registers, of which the last one's neighbour is the first. */
static uint64_t vectors(uint32_t number, uint32_t count) {
  uint64_t places = 0;
  for (uint32_t i = 0; i < count; i++)
    places |= vector((number + i) & 31);
  return places;
}

static void immediate(struct flow_instruction *flow, uint32_t word) {
  uint32_t group = FIELD(word, 25, 23);
  bool is_sum = group == 2, is_logical = group == 4, is_move = group == 5;
  bool is_insertion = group == 6 && FIELD(word, 30, 29) == 1, is_extraction = group == 7;
  bool keeps_rest = is_insertion || (is_move && FIELD(word, 30, 29) == 3);
  if (group >= 2 && !is_move)
    flow->reads = general(RN(word));
  if (is_extraction)
    flow->reads |= general(RM(word));
  if (keeps_rest)
    flow->reads |= general(RD(word));
  flow->replaces = general(RD(word)) |
                   flags((is_sum && BIT(word, 29)) || (is_logical && FIELD(word, 30, 29) == 3));
  if (is_sum && FIELD(word, 21, 10) == 0 && !BIT(word, 29))
    flow->kind = FLOW_COPIES;
}

static void three_registers(struct flow_instruction *flow, uint32_t word) {
  flow->reads = general(RN(word)) | general(RM(word));
  flow->replaces = general(RD(word));
}

/* Conditional compares, conditional selections, and what has one or two sources. */
static void other_registers(struct flow_instruction *flow, uint32_t word) {
  switch (FIELD(word, 24, 21)) {
  case 0: /* with carry, and of flags themselves */
    three_registers(flow, word);
    flow->reads |= flags(true);
    flow->replaces |= flags(BIT(word, 29));
    break;
  case 2: /* compares: an immediate stands where the second register does */
    flow->reads = general(RN(word)) | (BIT(word, 11) ? 0 : general(RM(word))) | flags(true);
    flow->replaces = flags(true);
    break;
  case 4:
    three_registers(flow, word);
    flow->reads |= flags(true);
    break;
  case 6:
    three_registers(flow, word);
    if (BIT(word, 30)) /* one source; the second field says which operation */
      flow->reads = general(RN(word));
    break;
  default: /* three sources */
    three_registers(flow, word);
    flow->reads |= general(RA(word));
    break;
  }
}

static void registers(struct flow_instruction *flow, uint32_t word) {
  if (BIT(word, 28)) {
    other_registers(flow, word);
    return;
  }
  bool is_sum = BIT(word, 24);
  three_registers(flow, word);
  flow->replaces |= flags(is_sum ? BIT(word, 29) : FIELD(word, 30, 29) == 3);
  bool is_move = IS(word, 0x7fe0ffe0, 0x2a0003e0);
  bool is_of_itself = RN(word) == RM(word) && FIELD(word, 15, 10) == 0;
  bool is_exclusive_or = !is_sum && FIELD(word, 30, 29) == 2 && !BIT(word, 21);
  bool is_difference = is_sum && BIT(word, 30) && !BIT(word, 21);
  if (is_move)
    flow->kind = FLOW_COPIES;
  else if (is_of_itself && (is_exclusive_or || is_difference))
    flow->kind = FLOW_CLEARS;
}

/* Lanes and parts of vector registers are not told apart. */
static void floating_point(struct flow_instruction *flow, uint32_t word) {
  bool converts = IS(word, 0x5f20fc00, 0x1e200000) || IS(word, 0x5f200000, 0x1e000000);
  bool copies = IS(word, 0x9fe08400, 0x0e000400);
  bool compares = IS(word, 0x5f203c00, 0x1e202000) || IS(word, 0x5f200c00, 0x1e200400);
  bool selects = IS(word, 0x5f200c00, 0x1e200c00) || IS(word, 0x5f200c00, 0x1e200400);
  flow->reads =
      vector(RN(word)) | vector(RM(word)) | vector(RA(word)) | vector(RD(word)) | flags(selects);
  flow->changes = vector(RD(word)) | flags(compares);
  if (converts || copies) {
    flow->reads |= general(RN(word));
    flow->changes |= general(RD(word));
  }
}

/* Counters and random numbers. */
static bool reads_clock(uint32_t word) {
  return IS(word, 0xfffff000, 0xd53be000) || IS(word, 0xfffff000, 0xd53b9000) ||
         IS(word, 0xffffff00, 0xd53b2400);
}

static void branch_or_system(struct flow_instruction *flow, uint32_t word) {
  bool is_return = IS(word, 0xfffffc1f, 0xd65f0000);
  if (IS(word, 0xff000000, 0x54000000)) { /* B.cond */
    flow->reads = flags(true);
    flow->is_branch = true;
  } else if (IS(word, 0x7c000000, 0x34000000)) { /* CBZ, TBZ, … */
    flow->reads = general(RD(word));
    flow->is_branch = true;
  } else if (IS(word, 0xfe000000, 0xd6000000)) { /* BR, BLR, RET */
    flow->reads = general(RN(word));
    flow->is_branch = !is_return;
  } else if (IS(word, 0xffe0001f, 0xd4000001)) { /* SVC */
    flow->replaces = general(0);
    flow->kind = FLOW_READS_CLOCK;
  } else if (IS(word, 0xfff00000, 0xd5300000)) { /* MRS */
    flow->reads = flags(IS(word, 0xffffffe0, 0xd53b4200));
    flow->replaces = general(RD(word));
    if (reads_clock(word))
      flow->kind = FLOW_READS_CLOCK;
  } else if (IS(word, 0xfff00000, 0xd5100000)) { /* MSR */
    flow->reads = general(RD(word));
    flow->replaces = flags(IS(word, 0xffffffe0, 0xd51b4200));
  }
  if (IS(word, 0xfc000000, 0x94000000) || IS(word, 0xfffffc1f, 0xd63f0000)) /* BL, BLR */
    flow->replaces |= general(A64_LINK);
}

/* Vector registers of a load or store. */
static uint64_t vectors_of(uint32_t word) {
  if (IS(word, 0xbf000000, 0x0c000000) || IS(word, 0xbf000000, 0x0d000000))
    return vectors(RD(word), 4); /* as many as there may be */
  return vector(RD(word)) | (IS(word, 0x3a000000, 0x28000000) ? vector(RA(word)) : 0);
}

static void load_or_store(struct flow_instruction *flow, uint32_t word,
                          const struct a64_access *access) {
  uint32_t changed = a64_changed_registers(word);
  struct a64_sum sum;
  bool writes_back = a64_sum_of(word, &sum);
  bool has_pair = IS(word, 0x3a000000, 0x28000000) || IS(word, 0x3f200000, 0x08200000);
  flow->replaces = changed & ~(1u << A64_STACK_POINTER);
  if (writes_back)
    flow->reads |= general(sum.source);
  if (BIT(word, 26)) {
    if (access->kind == SLOT_LOAD)
      flow->changes = vectors_of(word);
    else
      flow->reads |= vectors_of(word);
    return;
  }
  bool is_compare_and_swap = access->kind == SLOT_UPDATE && FIELD(word, 29, 24) == 8;
  if (access->kind == SLOT_UPDATE) {
    flow->reads |= general(RM(word)) | (is_compare_and_swap ? general(RD(word)) : 0);
    flow->kind = FLOW_GETS_OLD;
  } else if (access->kind == SLOT_STORE && !access->is_aligned) {
    flow->reads |= general(RD(word)) | (has_pair ? general(RA(word)) : 0);
  }
  bool is_sign_extended = access->kind == SLOT_LOAD && IS(word, 0x3b800000, 0x39800000);
  if (!has_pair && !writes_back && !access->is_exclusive && !is_sign_extended &&
      (access->kind == SLOT_LOAD || access->kind == SLOT_STORE))
    flow->kind = FLOW_COPIES;
}

/* False where its effects cannot be told. */
static bool describe(struct flow_instruction *flow, uint32_t word) {
  struct a64_access access;
  if (a64_access_of(word, &access)) {
    load_or_store(flow, word, &access);
    return true;
  }
  switch (FIELD(word, 28, 25)) {
  case 8:
  case 9:
    immediate(flow, word);
    return true;
  case 5:
  case 13:
    registers(flow, word);
    return true;
  case 7:
  case 15:
    floating_point(flow, word);
    return true;
  case 10:
  case 11:
    branch_or_system(flow, word);
    return true;
  default:
    return false;
  }
}

struct block_flow *block_flow_create(struct arena *arena, const struct block *block) {
  size_t bytes = sizeof(struct block_flow) + block->instructions * sizeof(struct flow_instruction);
  struct block_flow *flow = arena_allocate(arena, bytes);
  memset(flow, 0, bytes);
  flow->instructions = block->instructions;
  uint32_t slot = 0;
  for (uint32_t i = 0; i < block->instructions; i++) {
    struct flow_instruction *described = &flow->instruction[i];
    uint32_t word;
    memcpy(&word, block->code + 4 * i, sizeof(word));
    flow->is_opaque |= !describe(described, word);
    described->first_slot = (uint16_t)slot;
    while (slot < block->slots && block->slot[slot].instruction == i)
      slot++;
    described->slots = (uint16_t)(slot - described->first_slot);
  }
  return flow;
}
