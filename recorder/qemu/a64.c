/* SPDX-License-Identifier: Apache-2.0 */
/* Names of fields and classes are those of the Arm Architecture Reference Manual, section C4.1. */
#include "a64.h"

#include "a64_fields.h"

#define RT(word) ((word) & 31)
#define RT2(word) ((word) >> 10 & 31)

static int64_t sign_extend(uint64_t value, unsigned bits) {
  return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static bool is_vector(uint32_t word) { return BIT(word, 26); }

/* Load and store classes. */
static bool is_load_or_store(uint32_t word) { return IS(word, 0x0a000000, 0x08000000); }
static bool is_multiple_structures(uint32_t word) { return IS(word, 0xbf000000, 0x0c000000); }
static bool is_single_structure(uint32_t word) { return IS(word, 0xbf000000, 0x0d000000); }
static bool is_exclusive_class(uint32_t word) { return IS(word, 0x3f000000, 0x08000000); }
static bool is_unscaled_ordered(uint32_t word) { return IS(word, 0x3f200c00, 0x19000000); }
static bool is_literal(uint32_t word) { return IS(word, 0x3b000000, 0x18000000); }
static bool is_pair(uint32_t word) { return IS(word, 0x3a000000, 0x28000000); }
static bool is_single_register(uint32_t word) { return IS(word, 0x3a000000, 0x38000000); }
static bool is_scaled(uint32_t word) { return BIT(word, 24); } /* of these */
static bool is_atomic_memory(uint32_t word) { return IS(word, 0x3f200c00, 0x38200000); }
static bool is_ordered_load(uint32_t word) { return IS(word, 0x3ffffc00, 0x38bfc000); } /* LDAPR */
static bool is_register_offset(uint32_t word) { return IS(word, 0x3b200c00, 0x38200800); }
static bool is_compare_and_swap(uint32_t word) { return IS(word, 0x3fa07c00, 0x08a07c00); }
static bool is_swap_of_pairs(uint32_t word) { return IS(word, 0xbfa07c00, 0x08207c00); }

/* DC, by its operation's op1, CRm and op2, less the register. */
#define DC_MASK 0xffffffe0u
#define DC_ZVA 0xd50b7420u
#define DC_CVAC 0xd50b7a20u
#define DC_CVAU 0xd50b7b20u
#define DC_CVAP 0xd50b7c20u
#define DC_CVADP 0xd50b7d20u
#define DC_CIVAC 0xd50b7e20u

static bool is_flush(uint32_t word) {
  uint32_t operation = word & DC_MASK;
  return operation == DC_CVAC || operation == DC_CVAU || operation == DC_CVAP ||
         operation == DC_CVADP || operation == DC_CIVAC;
}

static void set(struct a64_access *access, enum slot_kind kind, uint32_t bytes, uint32_t word) {
  *access = (struct a64_access){.kind = kind,
                                .bytes = (uint16_t)bytes,
                                .base = (uint8_t)RN(word),
                                .index = A64_NONE,
                                .extension = A64_UXTX};
}

/* As of x86-64: the instruction names an address, no size. */
#define PREFETCH_BYTES 1u

static enum slot_kind load_if(bool is_load) { return is_load ? SLOT_LOAD : SLOT_STORE; }

static bool structures(uint32_t word, struct a64_access *access) {
  bool is_load = BIT(word, 22);
  uint32_t bytes;
  if (is_multiple_structures(word)) {
    static const uint8_t registers[16] = {[0] = 4, [2] = 4, [4] = 3, [6] = 3,
                                          [7] = 1, [8] = 2, [10] = 2};
    bytes = registers[FIELD(word, 15, 12)] * (BIT(word, 30) ? 16u : 8u);
  } else {
    uint32_t elements = (BIT(word, 13) ? 2u : 0u) + (BIT(word, 21) ? 1u : 0u) + 1;
    uint32_t size = FIELD(word, 11, 10), scale = FIELD(word, 15, 14);
    bytes = elements << (scale == 3 ? size : scale == 2 ? 2 + (size & 1) : scale);
  }
  set(access, load_if(is_load), bytes, word);
  return bytes != 0;
}

static bool exclusive(uint32_t word, struct a64_access *access) {
  uint32_t size = FIELD(word, 31, 30);
  bool is_load = BIT(word, 22), is_ordered = BIT(word, 23), is_of_pair = BIT(word, 21);
  if (is_compare_and_swap(word)) {
    set(access, SLOT_UPDATE, 1u << size, word);
  } else if (is_swap_of_pairs(word)) {
    set(access, SLOT_UPDATE, BIT(word, 30) ? 16 : 8, word);
  } else if (is_ordered) {
    set(access, load_if(is_load), 1u << size, word);
  } else {
    set(access, load_if(is_load), (is_of_pair ? 2u : 1u) << size, word);
    access->is_exclusive = !is_load;
  }
  return true;
}

static bool literal(uint32_t word, struct a64_access *access) {
  uint32_t opc = FIELD(word, 31, 30);
  bool is_prefetch = !is_vector(word) && opc == 3;
  uint32_t bytes = is_vector(word) ? 4u << opc : opc == 1 ? 8u : 4u;
  set(access, is_prefetch ? SLOT_PREFETCH : SLOT_LOAD, is_prefetch ? PREFETCH_BYTES : bytes, word);
  access->base = A64_NONE;
  access->displacement = sign_extend(FIELD(word, 23, 5), 19) * 4;
  return true;
}

static bool pair(uint32_t word, struct a64_access *access) {
  uint32_t opc = FIELD(word, 31, 30), mode = FIELD(word, 24, 23);
  uint32_t each = is_vector(word) ? 4u << opc : opc == 2 ? 8u : 4u;
  set(access, load_if(BIT(word, 22)), 2 * each, word);
  if (mode != 1) /* post-indexed */
    access->displacement = sign_extend(FIELD(word, 21, 15), 7) * each;
  return true;
}

static bool single_register(uint32_t word, struct a64_access *access) {
  uint32_t size = FIELD(word, 31, 30), opc = FIELD(word, 23, 22);
  if (is_atomic_memory(word)) {
    set(access, is_ordered_load(word) ? SLOT_LOAD : SLOT_UPDATE, 1u << size, word);
    return true;
  }
  uint32_t scale = is_vector(word) ? (opc & 2) << 1 | size : size;
  bool is_load = is_vector(word) ? (opc & 1) != 0 : opc != 0;
  bool is_prefetch = !is_vector(word) && size == 3 && opc == 2;
  set(access, is_prefetch ? SLOT_PREFETCH : load_if(is_load),
      is_prefetch ? PREFETCH_BYTES : 1u << scale, word);
  if (is_scaled(word)) {
    access->displacement = (int64_t)FIELD(word, 21, 10) << scale;
  } else if (is_register_offset(word)) {
    access->index = (uint8_t)RM(word);
    access->extension = (uint8_t)FIELD(word, 15, 13);
    access->shift = BIT(word, 12) ? (uint8_t)scale : 0;
  } else if (BIT(word, 21)) {
    return false; /* with pointer authentication */
  } else if (FIELD(word, 11, 10) != 1) {
    access->displacement = sign_extend(FIELD(word, 20, 12), 9);
  }
  return true;
}

static bool maintenance(uint32_t word, struct a64_access *access) {
  bool zeroes = (word & DC_MASK) == DC_ZVA;
  if (!zeroes && !is_flush(word))
    return false;
  set(access, zeroes ? SLOT_STORE : SLOT_FLUSH, zeroes ? A64_ZEROED_BYTES : CACHE_LINE_BYTES, 0);
  access->base = (uint8_t)RT(word);
  access->is_aligned = zeroes;
  return true;
}

bool a64_access_of(uint32_t word, struct a64_access *access) {
  if (!is_load_or_store(word))
    return maintenance(word, access);
  if (is_multiple_structures(word) || is_single_structure(word))
    return structures(word, access);
  if (is_exclusive_class(word))
    return exclusive(word, access);
  if (is_literal(word))
    return literal(word, access);
  if (is_pair(word))
    return pair(word, access);
  if (is_unscaled_ordered(word)) {
    set(access, load_if(FIELD(word, 23, 22) != 0), 1u << FIELD(word, 31, 30), word);
    access->displacement = sign_extend(FIELD(word, 20, 12), 9);
    return true;
  }
  return is_single_register(word) && single_register(word, access);
}

bool a64_is_atomic_update(uint32_t word) {
  return is_compare_and_swap(word) || is_swap_of_pairs(word) ||
         (is_atomic_memory(word) && !is_ordered_load(word) && !is_vector(word));
}

static uint32_t bit(uint32_t number) { return 1u << number; }
/* Number 31 is no register here. */
static uint32_t bit_of_general(uint32_t number) { return number == 31 ? 0 : 1u << number; }

static bool has_writeback(uint32_t word) {
  if (is_multiple_structures(word) || is_single_structure(word))
    return BIT(word, 23);
  if (is_pair(word))
    return BIT(word, 23); /* post-indexed 01, pre-indexed 11 */
  return is_single_register(word) && !is_scaled(word) && !BIT(word, 21) && BIT(word, 10);
}

static uint32_t changed_by_load_or_store(uint32_t word) {
  uint32_t changed = has_writeback(word) ? bit(RN(word)) : 0;
  struct a64_access access;
  if (!a64_access_of(word, &access))
    return ~0u;
  if (is_vector(word) || access.kind == SLOT_PREFETCH)
    return changed;
  if (is_exclusive_class(word)) {
    /* Also the status of an exclusive store, and what compare-and-swap found. */
    changed |= bit_of_general(RM(word));
    if (access.kind == SLOT_UPDATE && is_swap_of_pairs(word))
      changed |= bit_of_general((RM(word) + 1) & 31);
  }
  if (access.kind == SLOT_LOAD || is_atomic_memory(word))
    changed |= bit_of_general(RT(word));
  if (access.kind == SLOT_LOAD && (is_pair(word) || is_exclusive_class(word)))
    changed |= bit_of_general(RT2(word));
  return changed;
}

static uint32_t changed_by_vector(uint32_t word) {
  bool converts = IS(word, 0x5f20fc00, 0x1e200000) || IS(word, 0x5f200000, 0x1e000000);
  bool copies = IS(word, 0x9fe08400, 0x0e000400);
  return converts || copies ? bit_of_general(RT(word)) : 0;
}

static uint32_t changed_by_branch_or_system(uint32_t word) {
  if (IS(word, 0xfc000000, 0x94000000) || IS(word, 0xfffffc1f, 0xd63f0000)) /* BL, BLR */
    return bit(A64_LINK);
  if (IS(word, 0xfff00000, 0xd5300000) || IS(word, 0xfff80000, 0xd5280000)) /* MRS, SYSL */
    return bit_of_general(RT(word));
  if (IS(word, 0xfffff01f, 0xd503201f)) /* hints, of which some sign x17 or x30 */
    return bit(A64_LINK) | bit(17);
  return 0;
}

uint32_t a64_changed_registers(uint32_t word) {
  switch (FIELD(word, 28, 25)) {
  case 8:
  case 9: { /* immediate: additions and logical ones may change the stack pointer */
    bool sets_flags = BIT(word, 29) && (IS(word, 0x1f800000, 0x11000000) || BIT(word, 30));
    bool may_be_stack = IS(word, 0x1f800000, 0x11000000) || IS(word, 0x1f800000, 0x12000000);
    return may_be_stack && !sets_flags ? bit(RT(word)) : bit_of_general(RT(word));
  }
  case 5:
  case 13: { /* register */
    bool may_be_stack = IS(word, 0x3fe00000, 0x0b200000);
    return may_be_stack ? bit(RT(word)) : bit_of_general(RT(word));
  }
  case 7:
  case 15:
    return changed_by_vector(word);
  case 10:
  case 11:
    return changed_by_branch_or_system(word);
  case 4:
  case 6:
  case 12:
  case 14:
    return changed_by_load_or_store(word);
  default:
    return ~0u;
  }
}

bool a64_sum_of(uint32_t word, struct a64_sum *sum) {
  *sum = (struct a64_sum){.target = (uint8_t)RT(word), .source = (uint8_t)RN(word)};
  if (IS(word, 0xbf800000, 0x91000000)) { /* ADD and SUB, immediate, without flags */
    int64_t constant = (int64_t)FIELD(word, 21, 10) << (BIT(word, 22) ? 12 : 0);
    sum->constant = BIT(word, 30) ? -constant : constant;
    return true;
  }
  if (IS(word, 0x1f000000, 0x10000000)) { /* ADR and ADRP */
    uint64_t immediate = FIELD(word, 23, 5) << 2 | FIELD(word, 30, 29);
    sum->from_page = BIT(word, 31);
    sum->source = A64_NONE;
    sum->constant = sign_extend(immediate, 21) * (sum->from_page ? 4096 : 1);
    return sum->target != 31;
  }
  if (IS(word, 0xffe0ffe0, 0xaa0003e0)) { /* MOV: ORR with the zero register */
    sum->source = (uint8_t)RM(word);
    return sum->target != 31 && sum->source != 31;
  }
  if (is_load_or_store(word) && has_writeback(word) && !is_multiple_structures(word) &&
      !is_single_structure(word)) {
    struct a64_access access;
    sum->target = sum->source;
    if (is_pair(word)) {
      uint32_t opc = FIELD(word, 31, 30);
      sum->constant = sign_extend(FIELD(word, 21, 15), 7) * (is_vector(word) ? 4 << opc
                                                             : opc == 2      ? 8
                                                                             : 4);
    } else {
      sum->constant = sign_extend(FIELD(word, 20, 12), 9);
    }
    return a64_access_of(word, &access);
  }
  return false;
}

bool a64_ends_block(uint32_t word) {
  return IS(word, 0x7c000000, 0x14000000) || /* B, BL */
         IS(word, 0xff000000, 0x54000000) || /* B.cond, BC.cond */
         IS(word, 0x7c000000, 0x34000000) || /* CBZ, CBNZ, TBZ, TBNZ */
         IS(word, 0xff000000, 0xd4000000) || /* SVC and other exceptions */
         IS(word, 0xfe000000, 0xd6000000);   /* BR, BLR, RET, … */
}

bool a64_is_clean_to_persistence(uint32_t word) {
  uint32_t operation = word & DC_MASK;
  return operation == DC_CVAP || operation == DC_CVADP;
}

uint32_t a64_as_clean_to_coherence(uint32_t word) { return DC_CVAC | RT(word); }

unsigned a64_thread_pointer_source(uint32_t word) {
  return IS(word, 0xffffffe0, 0xd51bd040) && RT(word) != 31 ? RT(word) : A64_NONE;
}

bool a64_is_yield(uint32_t word) { return word == 0xd503203f; }

bool a64_is_marker(uint32_t word) { return IS(word, 0xfffe001f, 0xd2ea001f); }
