/* SPDX-License-Identifier: Apache-2.0 */
#include "block_plan.h"

#include "dr_api.h"

#include "drutil.h"

#include "address_expressions.h"
#include "baton.h"
#include "baton_checks.h"
#include "record_format.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "value_queue.h"
#include "vector_elements.h"

#include <string.h>

/* The engine is told to end blocks before this (client.c, -max_bb_instrs). */
#define INSTRUCTIONS_MAX 128u
#define INSTRUCTION_BYTES_MAX 17u
/* A gather has up to 16. */
#define INSTRUCTION_SLOTS_MAX 16u
#define SLOTS_MAX (INSTRUCTIONS_MAX * INSTRUCTION_SLOTS_MAX)

/* All that is gathered about a block before it has an id. It is too large to be made anew each
 * time; blocks are built one after the other anyway. */
static struct draft {
  struct block block;
  uint8_t lengths[INSTRUCTIONS_MAX];
  uint8_t code[INSTRUCTIONS_MAX * INSTRUCTION_BYTES_MAX];
  struct slot slot[SLOTS_MAX];
  struct raw_source source[SLOTS_MAX];
  uint32_t sources;
  struct address_expressions expressions;
} the_draft;
static void *draft_lock;

void block_plans_init(void) { draft_lock = dr_mutex_create(); }

void block_plans_after_fork(void) { draft_lock = dr_mutex_create(); }

void block_plans_exit(void) { dr_mutex_destroy(draft_lock); }

static uint16_t add_source(struct draft *draft, enum raw_source_how how, reg_id_t reg,
                           opnd_t operand, uint16_t words) {
  struct raw_source *source = &draft->source[draft->sources++];
  source->instruction = draft->block.instructions;
  source->word = draft->block.raw_words;
  source->how = (uint8_t)how;
  source->reg = reg;
  source->operand = operand;
  draft->block.raw_words += words;
  return source->word;
}

static void add_slot(struct draft *draft, enum slot_kind kind, uint32_t bytes, uint16_t raw,
                     int64_t displacement) {
  struct slot *slot = &draft->slot[draft->block.slots++];
  slot->instruction = draft->block.instructions;
  slot->kind = (uint8_t)kind;
  slot->bytes = (uint16_t)(bytes > UINT16_MAX ? UINT16_MAX : bytes);
  slot->raw = raw;
  slot->displacement = displacement;
  if (kind == SLOT_LOAD || kind == SLOT_UPDATE || kind == SLOT_GATHER ||
      kind == SLOT_STRING_SOURCE || kind == SLOT_STRING_DESTINATION)
    draft->block.flags |= BLOCK_READS;
  if (slot_writes(slot))
    draft->block.flags |= BLOCK_STORES;
}

/* A slot whose value is a register's before the instruction, plus a constant. */
static void add_register_slot(struct draft *draft, enum slot_kind kind, uint32_t bytes,
                              reg_id_t reg, int64_t displacement) {
  uint16_t raw;
  int64_t known;
  if (!address_expressions_find(&draft->expressions, reg, DR_REG_NULL, 1, &raw, &known)) {
    raw = add_source(draft, RAW_REGISTER, reg, opnd_create_null(), 1);
    known = 0;
    address_expressions_add(&draft->expressions, reg, DR_REG_NULL, 1, raw, known);
  }
  add_slot(draft, kind, bytes, raw, known + displacement);
}

static bool is_plain_register(reg_id_t reg) { return reg_is_64bit(reg) && reg_is_gpr(reg); }

static bool segment_counts(opnd_t operand) {
  reg_id_t segment = opnd_get_segment(operand);
  return segment == DR_SEG_FS || segment == DR_SEG_GS;
}

static void add_operand_slot(struct draft *draft, enum slot_kind kind, uint32_t bytes,
                             opnd_t operand) {
  if ((opnd_is_rel_addr(operand) || opnd_is_abs_addr(operand)) && !segment_counts(operand)) {
    add_slot(draft, kind, bytes, 0, (int64_t)(ptr_int_t)opnd_get_addr(operand));
    return;
  }
  if (!opnd_is_base_disp(operand) || segment_counts(operand)) {
    uint16_t raw = add_source(draft, RAW_ADDRESS, DR_REG_NULL, operand, 1);
    add_slot(draft, kind, bytes, raw, 0);
    return;
  }
  reg_id_t base = opnd_get_base(operand), index = opnd_get_index(operand);
  int displacement = opnd_get_disp(operand), scale = opnd_get_scale(operand);
  if (is_plain_register(base) && index == DR_REG_NULL) {
    add_register_slot(draft, kind, bytes, base, displacement);
    return;
  }
  bool can_share = (base == DR_REG_NULL || is_plain_register(base)) && is_plain_register(index);
  uint16_t raw;
  int64_t known;
  if (!can_share ||
      !address_expressions_find(&draft->expressions, base, index, scale, &raw, &known)) {
    raw = add_source(draft, RAW_ADDRESS, DR_REG_NULL, operand, 1);
    known = -(int64_t)displacement;
    if (can_share)
      address_expressions_add(&draft->expressions, base, index, scale, raw, known);
  }
  add_slot(draft, kind, bytes, raw, known + displacement);
}

static bool is_repeated_string(int opcode, bool *reads_source, bool *has_destination) {
  *reads_source = *has_destination = true;
  switch (opcode) {
  case OP_rep_movs:
  case OP_rep_cmps:
  case OP_repne_cmps:
    return true;
  case OP_rep_lods:
    *has_destination = false;
    return true;
  case OP_rep_stos:
  case OP_rep_scas:
  case OP_repne_scas:
    *reads_source = false;
    return true;
  default:
    return false;
  }
}

static void add_string_slots(struct draft *draft, enum slot_kind kind, uint32_t bytes,
                             reg_id_t reg) {
  add_register_slot(draft, kind, bytes, reg, 0);
  uint16_t raw = add_source(draft, RAW_REGISTER_AFTER, reg, opnd_create_null(), 1);
  add_slot(draft, kind, bytes, raw, 0);
}

static bool names_memory_only(int opcode) {
  return opcode == OP_lea || opcode == OP_nop_modrm || opcode == OP_bndmk || opcode == OP_bndcl ||
         opcode == OP_bndcu || opcode == OP_bndcn;
}

static bool is_flush(int opcode) {
  return opcode == OP_clflush || opcode == OP_clflushopt || opcode == OP_clwb;
}

static opnd_t first_memory_source(instr_t *instr) {
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    if (opnd_is_memory_reference(instr_get_src(instr, i)))
      return instr_get_src(instr, i);
  }
  return opnd_create_null();
}

static bool is_written_too(instr_t *instr, opnd_t operand) {
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    if (opnd_same(instr_get_dst(instr, i), operand))
      return true;
  }
  return false;
}

static bool is_read_too(instr_t *instr, opnd_t operand) {
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    if (opnd_same(instr_get_src(instr, i), operand))
      return true;
  }
  return false;
}

/* `enter` pushes the frame pointer, and one more per level of nesting and the frame's own. */
static void add_enter_slot(struct draft *draft, instr_t *instr) {
  uint32_t level = (uint32_t)opnd_get_immed_int(instr_get_src(instr, 1)) % 32;
  uint32_t bytes = 8 * (level == 0 ? 1 : level + 1);
  add_register_slot(draft, SLOT_STORE, bytes, DR_REG_XSP, -(int64_t)bytes);
}

/* A `pop` to memory adds to the stack pointer before it computes the address; the engine's operand
 * does not show it. */
static opnd_t pop_target(opnd_t operand) {
  if (!opnd_is_base_disp(operand) || opnd_get_base(operand) != DR_REG_XSP)
    return operand;
  return opnd_create_base_disp(DR_REG_XSP, opnd_get_index(operand), opnd_get_scale(operand),
                               opnd_get_disp(operand) + opnd_size_in_bytes(opnd_get_size(operand)),
                               opnd_get_size(operand));
}

static void add_ordinary_slots(struct draft *draft, instr_t *instr) {
  bool is_prefetch = instr_is_prefetch(instr);
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    opnd_t operand = instr_get_src(instr, i);
    if (!opnd_is_memory_reference(operand))
      continue;
    enum slot_kind kind = is_prefetch                      ? SLOT_PREFETCH
                          : is_written_too(instr, operand) ? SLOT_UPDATE
                                                           : SLOT_LOAD;
    add_operand_slot(draft, kind, drutil_opnd_mem_size_in_bytes(operand, instr), operand);
  }
  for (int i = 0; i < instr_num_dsts(instr); i++) {
    opnd_t operand = instr_get_dst(instr, i);
    if (!opnd_is_memory_reference(operand) || is_read_too(instr, operand))
      continue;
    uint32_t bytes = drutil_opnd_mem_size_in_bytes(operand, instr);
    if (instr_get_opcode(instr) == OP_pop)
      operand = pop_target(operand);
    add_operand_slot(draft, SLOT_STORE, bytes, operand);
  }
}

static void add_slots(struct draft *draft, instr_t *instr) {
  int opcode = instr_get_opcode(instr);
  bool reads_source, has_destination;
  struct vector_elements elements;
  if (names_memory_only(opcode))
    return;
  if (is_repeated_string(opcode, &reads_source, &has_destination)) {
    uint32_t bytes = drutil_opnd_mem_size_in_bytes(
        reads_source
            ? first_memory_source(instr)
            : (opcode == OP_rep_stos ? instr_get_dst(instr, 0) : first_memory_source(instr)),
        instr);
    if (reads_source)
      add_string_slots(draft, SLOT_STRING_SOURCE, bytes, DR_REG_XSI);
    if (has_destination)
      add_string_slots(draft, SLOT_STRING_DESTINATION, bytes, DR_REG_XDI);
  } else if (is_flush(opcode)) {
    opnd_t operand = first_memory_source(instr);
    if (opnd_is_null(operand))
      operand = instr_get_dst(instr, 0);
    add_operand_slot(draft, SLOT_FLUSH, CACHE_LINE_BYTES, operand);
  } else if (vector_elements_describe(instr, instr_get_app_pc(instr), &elements)) {
    uint16_t raw =
        add_source(draft, RAW_ELEMENTS, DR_REG_NULL, elements.operand, (uint16_t)elements.count);
    for (uint32_t i = 0; i < elements.count; i++)
      add_slot(draft, elements.is_scatter ? SLOT_SCATTER : SLOT_GATHER, elements.element_bytes,
               (uint16_t)(raw + i), 0);
  } else if (opcode == OP_enter) {
    add_enter_slot(draft, instr);
  } else {
    add_ordinary_slots(draft, instr);
  }
}

/* What an atomic update finds, what it adds or stores, and what it compares with: together they say
 * what it leaves. */
static void add_value_slots(struct draft *draft, instr_t *instr) {
  opnd_t operand = first_memory_source(instr);
  if (opnd_is_null(operand))
    return;
  uint32_t bytes = drutil_opnd_mem_size_in_bytes(operand, instr);
  add_slot(draft, SLOT_VALUE, bytes, add_source(draft, RAW_MEMORY, DR_REG_NULL, operand, 1), 0);
  int opcode = instr_get_opcode(instr);
  bool is_compared = opcode == OP_cmpxchg;
  if (opcode == OP_cmpxchg8b || opcode == OP_cmpxchg16b) { /* of both halves the lower one */
    add_register_slot(draft, SLOT_VALUE, bytes, DR_REG_XBX, 0);
    add_register_slot(draft, SLOT_VALUE, bytes, DR_REG_XAX, 0);
    return;
  }
  for (int i = 0; i < instr_num_srcs(instr); i++) {
    opnd_t source = instr_get_src(instr, i);
    if (opnd_is_immed_int(source)) {
      add_slot(draft, SLOT_VALUE, bytes, 0, (int64_t)opnd_get_immed_int(source));
      break;
    }
    if (opnd_is_reg(source) && reg_is_gpr(opnd_get_reg(source)) &&
        (!is_compared || reg_to_pointer_sized(opnd_get_reg(source)) != DR_REG_XAX)) {
      add_register_slot(draft, SLOT_VALUE, bytes, reg_to_pointer_sized(opnd_get_reg(source)), 0);
      break;
    }
  }
  if (is_compared)
    add_register_slot(draft, SLOT_VALUE, bytes, DR_REG_XAX, 0);
}

/* A no-operation whose displacement says that it marks a region of interest. */
static bool is_region_marker(const uint8_t *code, uint32_t length) {
  static const uint8_t start[] = {0x0f, 0x1f, 0x84, 0x00};
  return length == 8 && memcmp(code, start, sizeof(start)) == 0 && code[6] == 0x43 &&
         code[7] == 0x50;
}

static void add_instruction(void *drcontext, struct draft *draft, instr_t *instr) {
  uint32_t length = (uint32_t)instr_length(drcontext, instr);
  if (draft->block.instructions == 0)
    draft->block.address = (uint64_t)(ptr_uint_t)instr_get_app_pc(instr);
  memcpy(draft->code + draft->block.code_bytes, instr_get_app_pc(instr), length);
  draft->block.code_bytes += length;
  draft->lengths[draft->block.instructions] = (uint8_t)length;
  if (instr_get_opcode(instr) == OP_pause)
    draft->block.flags |= BLOCK_HAS_PAUSE;
  if (is_region_marker(instr_get_app_pc(instr), length))
    draft->block.flags |= BLOCK_HAS_MARKER;
  add_slots(draft, instr);
  if (baton_is_passed && baton_checks_is_atomic(instr))
    add_value_slots(draft, instr);
  address_expressions_step(&draft->expressions, instr);
  draft->block.instructions++;
}

void block_plan_cut(void *drcontext, instrlist_t *block, instr_t *from) {
  while (from != NULL) {
    instr_t *next = instr_get_next(from);
    instrlist_remove(block, from);
    instr_destroy(drcontext, from);
    from = next;
  }
}

/* What is outside of the region is counted. */
static struct block_plan *count_only(void *drcontext, instrlist_t *ilist) {
  struct block_plan *plan = dr_thread_alloc(drcontext, sizeof(*plan));
  memset(plan, 0, sizeof(*plan));
  for (instr_t *instr = instrlist_first_app(ilist); instr != NULL;
       instr = instr_get_next_app(instr))
    plan->instructions++;
  return plan;
}

struct block_plan *block_plan_create(void *drcontext, instrlist_t *ilist) {
  if (region_is_outside)
    return count_only(drcontext, ilist);
  struct draft *draft = &the_draft;
  dr_mutex_lock(draft_lock);
  memset(&draft->block, 0, sizeof(draft->block));
  address_expressions_init(&draft->expressions);
  draft->sources = 0;
  draft->block.raw_words = values_are_recorded ? VALUES_WORD + 1 : 1;
  draft->block.lengths = draft->lengths;
  draft->block.code = draft->code;
  draft->block.slot = draft->slot;
  struct block_plan *plan = dr_thread_alloc(drcontext, sizeof(*plan));
  memset(plan, 0, sizeof(*plan));
  for (instr_t *instr = instrlist_first_app(ilist); instr != NULL;
       instr = instr_get_next_app(instr)) {
    add_instruction(drcontext, draft, instr);
    plan->used_registers |= registers_read(instr) | registers_written(instr);
  }
  plan->instructions = draft->block.instructions;
  plan->raw_words = draft->block.raw_words;
  plan->sources = draft->sources;
  if (plan->instructions != 0)
    plan->id = code_table_intern(&draft->block);
  if (draft->sources != 0) {
    plan->source = dr_thread_alloc(drcontext, draft->sources * sizeof(struct raw_source));
    memcpy(plan->source, draft->source, draft->sources * sizeof(struct raw_source));
  }
  dr_mutex_unlock(draft_lock);
  return plan;
}

void block_plan_free(void *drcontext, struct block_plan *plan) {
  if (plan->sources != 0)
    dr_thread_free(drcontext, plan->source, plan->sources * sizeof(struct raw_source));
  dr_thread_free(drcontext, plan, sizeof(*plan));
}
