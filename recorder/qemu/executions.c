/* SPDX-License-Identifier: Apache-2.0 */
#include "executions.h"

#include "engine.h"
#include "guest.h"
#include "plan.h"
#include "platform.h"
#include "selected_memory.h"
#include "special_blocks.h"
#include "value_queue.h"
#include "watched_accesses.h"

#include <string.h>

static bool is_compared;
static uint64_t compared, different;

/* The program's addresses have eight bits that the processor ignores. */
static uint64_t without_tag(uint64_t address) { return (uint64_t)((int64_t)(address << 8) >> 8); }

static uint64_t extended(uint64_t value, uint8_t extension) {
  return extension == A64_UXTW   ? (uint32_t)value
         : extension == A64_SXTW ? (uint64_t)(int64_t)(int32_t)value
                                 : value;
}

static inline void take(const struct guest *guest, uint64_t *execution,
                        const struct plan_capture *capture) {
  for (uint32_t i = 0; i < capture->sources; i++) {
    const struct plan_source *source = &capture->source[i];
    uint64_t value = guest->registers[source->base];
    if (source->index != A64_NONE)
      value += extended(guest->registers[source->index], source->extension) << source->shift;
    execution[source->word] = without_tag(value) >> source->cleared << source->cleared;
  }
}

static inline void begin_block(struct guest *guest, const struct plan *plan) {
  bool is_special = plan->is_special || plan->address == guest->returns_to;
  if (__builtin_expect(is_special || guest->watched != NULL, false))
    special_block_begins(guest, plan);
  uint64_t *at = guest->position;
  if (__builtin_expect(at + plan->raw_words > guest->thread.guard, false)) {
    thread_drain(&guest->thread);
    at = guest->position;
  }
  at[0] = plan->id;
  if (values_are_recorded)
    at[VALUES_WORD] = 0;
  guest->position = at + plan->raw_words;
  take(guest, at, &plan->capture[0]);
}

static void on_block(unsigned vcpu, void *user_data) {
  const struct plan *plan = user_data;
  struct guest *guest = the_guest;
  if (__builtin_expect(guest == NULL, false))
    guest = guest_begin(vcpu);
  begin_block(guest, plan);
}

/* Likewise, where registers have to be asked for. */
static void on_block_copying(unsigned vcpu, void *user_data) {
  const struct plan *plan = user_data;
  struct guest *guest = the_guest;
  if (guest == NULL)
    guest = guest_begin(vcpu);
  guest_wants_registers(guest, plan->is_special || plan->address == guest->returns_to ||
                                       guest->watched != NULL
                                   ? ~0u
                                   : plan->capture[0].registers);
  begin_block(guest, plan);
}

static void on_capture(unsigned vcpu, void *user_data) {
  const struct plan_capture *capture = user_data;
  (void)vcpu;
  take(the_guest, the_guest->position - capture->plan->raw_words, capture);
}

static void on_capture_copying(unsigned vcpu, void *user_data) {
  const struct plan_capture *capture = user_data;
  engine_copy_registers(capture->registers);
  on_capture(vcpu, user_data);
}

static void on_thread_pointer(unsigned vcpu, void *user_data) {
  unsigned number = (unsigned)(uintptr_t)user_data;
  (void)vcpu;
  guest_wants_registers(the_guest, 1u << number);
  the_guest->thread_pointer = guest_register(the_guest, number);
  the_guest->thread.pointer = 0;
}

/* One instruction whose accesses are compared. */
struct comparison {
  const struct plan *plan;
  const struct slot *slot; /* NULL where it should have none */
};

unsigned qemu_plugin_mem_size_shift(uint32_t access);
bool qemu_plugin_mem_is_store(uint32_t access);

static void on_compared_access(unsigned vcpu, uint32_t access, uint64_t address, void *user_data) {
  const struct comparison *comparison = user_data;
  const struct slot *slot = comparison->slot;
  (void)vcpu;
  __atomic_add_fetch(&compared, 1, __ATOMIC_RELAXED);
  if (slot != NULL) {
    uint64_t start = plan_slot_address(comparison->plan, slot, the_guest->position);
    uint64_t bytes = (uint64_t)1 << qemu_plugin_mem_size_shift(access);
    bool is_store = qemu_plugin_mem_is_store(access);
    bool is_of_kind =
        slot->kind == SLOT_UPDATE || slot->kind == (is_store ? SLOT_STORE : SLOT_LOAD);
    /* A store-exclusive is made of a comparison and a store. */
    is_of_kind |= slot->kind == SLOT_STORE && !is_store;
    if (is_of_kind && address >= start && address + bytes <= start + slot->bytes)
      return;
  }
  __atomic_add_fetch(&different, 1, __ATOMIC_RELAXED);
}

static void compare(struct qemu_plugin_insn *instruction, const struct plan *plan, uint32_t index) {
  struct comparison *comparison = platform_allocate(sizeof(*comparison));
  *comparison = (struct comparison){.plan = plan, .slot = plan_slot(plan, index)};
  qemu_plugin_register_vcpu_mem_cb(instruction, on_compared_access, CALLBACK_NO_REGISTERS,
                                   MEMORY_BOTH, comparison);
}

void executions_check(void) { is_compared = true; }

void executions_checked(uint64_t *all, uint64_t *wrong) {
  *all = __atomic_load_n(&compared, __ATOMIC_RELAXED);
  *wrong = __atomic_load_n(&different, __ATOMIC_RELAXED);
}

/* A block of the record, from instruction `first` of the translation block on. */
static void add_block(struct qemu_plugin_tb *translated, uint32_t first, uint64_t address,
                      const uint32_t *word, uint32_t words) {
  struct plan *plan = plan_of(address, word, words);
  bool copies = engine_copies_registers();
  if (plan == NULL)
    return;
  special_block_describe(plan, word[0]);
  uint32_t behind = first + words, captures = 0;
  for (uint32_t i = 0; i < words; i++) {
    struct plan_capture *capture = &plan->capture[captures];
    unsigned source = a64_thread_pointer_source(word[i]);
    struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(translated, first + i);
    if (i == 0)
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, copies ? on_block_copying : on_block,
                                             CALLBACK_READS_REGISTERS, plan);
    else if (captures < plan->captures && capture->instruction == i)
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, copies ? on_capture_copying : on_capture,
                                             CALLBACK_READS_REGISTERS, capture);
    captures += captures < plan->captures && capture->instruction == i;
    bool is_last = i + 1 == words && behind == qemu_plugin_tb_n_insns(translated);
    watched_access_translate(plan, i, word[i], instruction,
                             is_last ? NULL : qemu_plugin_tb_get_insn(translated, first + i + 1));
    if (source != A64_NONE)
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_thread_pointer,
                                             CALLBACK_READS_REGISTERS, (void *)(uintptr_t)source);
    if (is_compared)
      compare(instruction, plan, i);
  }
}

void executions_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *translated) {
  uint32_t count = (uint32_t)qemu_plugin_tb_n_insns(translated), first = 0;
  uint32_t word[PLAN_INSTRUCTIONS_MAX];
  (void)id;
  uint64_t address = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t at = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(translated, i));
    if (i == first)
      address = at;
    memcpy(&word[i - first], (const void *)(uintptr_t)at, sizeof(*word));
    bool ends = i + 1 == count || i + 1 - first == PLAN_INSTRUCTIONS_MAX ||
                a64_ends_block(word[i - first]) || watched_access_ends_block(word[i - first]) ||
                special_block_begins_at(at + sizeof(*word));
    if (!ends)
      continue;
    add_block(translated, first, address, word, i + 1 - first);
    first = i + 1;
  }
}
