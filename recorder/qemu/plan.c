/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include "address_map.h"
#include "arena.h"
#include "platform.h"
#include "recording.h"
#include "selected_memory.h"
#include "value_queue.h"

#include <string.h>

/* What a register holds, as far as that is known at some instruction of the block. */
enum knowledge {
  AT_START, /* what register `number` held before the block's first instruction, and `constant` */
  AS_WORD,  /* word `number` of the execution, and `constant` */
  CONSTANT,
  UNKNOWN,
};

struct expression {
  enum knowledge knowledge;
  uint16_t number;
  int64_t constant;
};

/* One at a time, in memory of its own: blocks are long. */
static struct draft {
  struct block block;
  uint8_t code[4 * PLAN_INSTRUCTIONS_MAX];
  uint8_t lengths[PLAN_INSTRUCTIONS_MAX];
  struct slot slot[PLAN_INSTRUCTIONS_MAX];
  struct plan_source source[PLAN_INSTRUCTIONS_MAX + A64_REGISTERS];
  uint16_t instruction[PLAN_INSTRUCTIONS_MAX + A64_REGISTERS]; /* before which it is taken */
  uint32_t sources;
  struct expression register_of[A64_REGISTERS];
  uint64_t pc;
} the_draft;

static struct {
  void *lock;
  struct arena memory;
  struct address_map by_id;      /* struct plan */
  struct address_map by_address; /* struct plan_list */
} plans;

struct plan_list {
  struct plan *plan;
  struct plan_list *next;
};

void plans_init(void) { plans.lock = platform_mutex_create(); }

void plans_after_fork(void) { plans.lock = platform_mutex_create(); }

/* The word of a source that is taken before `instruction`; an equal one is shared. */
static uint16_t add_source(struct draft *draft, uint16_t instruction, struct plan_source wanted) {
  for (uint32_t i = 0; i < draft->sources && instruction == 0; i++) {
    const struct plan_source *known = &draft->source[i];
    if (draft->instruction[i] == 0 && known->base == wanted.base && known->index == wanted.index &&
        known->extension == wanted.extension && known->shift == wanted.shift &&
        known->cleared == wanted.cleared)
      return known->word;
  }
  wanted.word = draft->block.raw_words++;
  draft->source[draft->sources] = wanted;
  draft->instruction[draft->sources++] = instruction;
  return wanted.word;
}

static struct plan_source register_source(uint8_t number) {
  return (struct plan_source){.base = number, .index = A64_NONE, .extension = A64_UXTX};
}

static void add_slot(struct draft *draft, const struct a64_access *access, uint16_t raw,
                     int64_t displacement) {
  struct block *block = &draft->block;
  struct slot *slot = &draft->slot[block->slots++];
  *slot = (struct slot){.instruction = block->instructions,
                        .kind = (uint8_t)access->kind,
                        .bytes = access->bytes,
                        .raw = raw,
                        .displacement = displacement};
  if (access->kind == SLOT_LOAD || access->kind == SLOT_UPDATE)
    block->flags |= BLOCK_READS;
  if (slot_writes(slot))
    block->flags |= BLOCK_STORES;
}

/* At a base register alone. */
static void add_base_slot(struct draft *draft, const struct a64_access *access) {
  struct expression *base = &draft->register_of[access->base];
  if (base->knowledge == AT_START) {
    uint16_t word = add_source(draft, 0, register_source((uint8_t)base->number));
    add_slot(draft, access, word, base->constant + access->displacement);
    return;
  }
  if (base->knowledge == UNKNOWN) {
    uint16_t word = add_source(draft, draft->block.instructions, register_source(access->base));
    *base = (struct expression){AS_WORD, word, 0};
  }
  uint16_t raw = base->knowledge == CONSTANT ? 0 : base->number;
  add_slot(draft, access, raw, base->constant + access->displacement);
}

static void add_indexed_slot(struct draft *draft, const struct a64_access *access) {
  const struct expression *base = &draft->register_of[access->base];
  const struct expression *index = access->index == 31 ? NULL : &draft->register_of[access->index];
  struct plan_source source = {.base = access->base,
                               .index = access->index == 31 ? A64_NONE : access->index,
                               .extension = access->extension,
                               .shift = access->shift};
  bool is_whole = access->extension == A64_UXTX || access->extension == A64_SXTX;
  bool is_at_start =
      base->knowledge == AT_START &&
      (index == NULL || (index->knowledge == AT_START && (is_whole || index->constant == 0)));
  if (!is_at_start) {
    add_slot(draft, access, add_source(draft, draft->block.instructions, source), 0);
    return;
  }
  int64_t constant = base->constant;
  source.base = (uint8_t)base->number;
  if (index != NULL) {
    source.index = (uint8_t)index->number;
    constant += (int64_t)((uint64_t)index->constant << access->shift);
  }
  add_slot(draft, access, add_source(draft, 0, source), constant);
}

static void add_access(struct draft *draft, const struct a64_access *access) {
  if (access->base == A64_NONE) {
    add_slot(draft, access, 0, (int64_t)draft->pc + access->displacement);
  } else if (access->is_aligned) {
    struct plan_source source = register_source(access->base);
    while (1u << source.cleared < access->bytes)
      source.cleared++;
    add_slot(draft, access, add_source(draft, draft->block.instructions, source), 0);
  } else if (access->index != A64_NONE) {
    add_indexed_slot(draft, access);
  } else {
    add_base_slot(draft, access);
  }
}

/* What registers hold behind the instruction. */
static void step(struct draft *draft, uint32_t word) {
  struct a64_sum sum;
  struct expression result = {UNKNOWN, 0, 0};
  bool is_sum = a64_sum_of(word, &sum);
  if (is_sum && sum.source == A64_NONE) {
    uint64_t from = sum.from_page ? draft->pc & ~(uint64_t)4095 : draft->pc;
    result = (struct expression){CONSTANT, 0, (int64_t)from + sum.constant};
  } else if (is_sum) {
    result = draft->register_of[sum.source];
    result.constant += sum.constant;
  }
  uint32_t changed = a64_changed_registers(word);
  for (unsigned number = 0; number < A64_REGISTERS; number++) {
    if ((changed >> number & 1) != 0)
      draft->register_of[number].knowledge = UNKNOWN;
  }
  if (is_sum)
    draft->register_of[sum.target] = result;
}

static void add_instruction(struct draft *draft, uint32_t word) {
  struct block *block = &draft->block;
  struct a64_access access;
  memcpy(draft->code + block->code_bytes, &word, sizeof(word));
  block->code_bytes += (uint32_t)sizeof(word);
  draft->lengths[block->instructions] = sizeof(word);
  if (a64_is_yield(word))
    block->flags |= BLOCK_HAS_PAUSE;
  if (a64_is_marker(word))
    block->flags |= BLOCK_HAS_MARKER;
  if (a64_access_of(word, &access))
    add_access(draft, &access);
  step(draft, word);
  block->instructions++;
  draft->pc += sizeof(word);
}

static void begin(struct draft *draft, uint64_t address) {
  memset(&draft->block, 0, sizeof(draft->block));
  draft->block.address = draft->pc = address;
  draft->block.raw_words = values_are_recorded ? VALUES_WORD + 1 : 1;
  draft->block.lengths = draft->lengths;
  draft->block.code = draft->code;
  draft->block.slot = draft->slot;
  draft->sources = 0;
  for (uint16_t number = 0; number < A64_REGISTERS; number++)
    draft->register_of[number] = (struct expression){AT_START, number, 0};
}

/* One capture before the first instruction, and one before each other that has a source. */
static struct plan *lay_out(const struct draft *draft) {
  uint16_t captures = 1;
  bool has_own[PLAN_INSTRUCTIONS_MAX] = {false};
  for (uint32_t i = 0; i < draft->sources; i++) {
    captures += draft->instruction[i] != 0 && !has_own[draft->instruction[i]];
    has_own[draft->instruction[i]] = true;
  }
  size_t bytes = sizeof(struct plan) + captures * sizeof(struct plan_capture);
  struct plan *plan = arena_allocate(&plans.memory, bytes);
  struct plan_source *source =
      arena_allocate(&plans.memory, (draft->sources + 1) * sizeof(struct plan_source));
  memset(plan, 0, bytes);
  plan->address = draft->block.address;
  plan->raw_words = draft->block.raw_words;
  plan->instructions = draft->block.instructions;
  for (uint16_t instruction = 0; instruction < draft->block.instructions; instruction++) {
    if (instruction != 0 && !has_own[instruction])
      continue;
    struct plan_capture *capture = &plan->capture[plan->captures++];
    *capture = (struct plan_capture){.plan = plan, .instruction = instruction, .source = source};
    for (uint32_t i = 0; i < draft->sources; i++) {
      if (draft->instruction[i] != instruction)
        continue;
      source[capture->sources++] = draft->source[i];
      capture->registers |= 1u << draft->source[i].base;
      if (draft->source[i].index != A64_NONE)
        capture->registers |= 1u << draft->source[i].index;
    }
    source += capture->sources;
  }
  return plan;
}

static void remember(struct plan *plan) {
  struct plan_list *entry = arena_allocate(&plans.memory, sizeof(*entry));
  *entry = (struct plan_list){plan, address_map_find(&plans.by_address, plan->address)};
  address_map_set(&plans.by_address, plan->address, entry);
  address_map_set(&plans.by_id, plan->id, plan);
}

struct plan *plan_of(uint64_t address, const uint32_t *word, uint32_t words) {
  struct draft *draft = &the_draft;
  platform_mutex_lock(plans.lock);
  begin(draft, address);
  for (uint32_t i = 0; i < words; i++)
    add_instruction(draft, word[i]);
  uint32_t id = code_table_intern(&draft->block);
  struct plan *plan = id == 0 ? NULL : address_map_find(&plans.by_id, id);
  if (plan == NULL && id != 0) {
    plan = lay_out(draft);
    plan->id = id;
    remember(plan);
  }
  platform_mutex_unlock(plans.lock);
  return plan;
}

void plans_at(uint64_t address, void (*visit)(struct plan *plan)) {
  platform_mutex_lock(plans.lock);
  for (struct plan_list *entry = address_map_find(&plans.by_address, address); entry != NULL;
       entry = entry->next)
    visit(entry->plan);
  platform_mutex_unlock(plans.lock);
}

const struct slot *plan_slot(const struct plan *plan, uint32_t instruction) {
  const struct block *block = code_table_get(plan->id);
  for (uint32_t i = 0; i < block->slots; i++) {
    if (block->slot[i].instruction == instruction)
      return &block->slot[i];
  }
  return NULL;
}
