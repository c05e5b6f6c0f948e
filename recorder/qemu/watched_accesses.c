/* SPDX-License-Identifier: Apache-2.0 */
#include "watched_accesses.h"

#include "a64_fields.h"
#include "interrupted_execution.h"
#include "platform.h"
#include "selected_memory.h"
#include "values.h"
#include "write_order.h"

#include <string.h>

struct watched_access {
  const struct plan *plan;
  uint64_t pc;
  const struct slot *slot;
  uint32_t index;
  uint32_t word;
  struct a64_access access;
  struct write_place place; /* where it writes, and values are kept */
  bool has_place;
  bool orders;  /* it takes its place in the order of writes */
  bool has_end; /* something is called behind it in its own translation block */
};

/* The register that says whether, or of what, a conditional write has been made. */
static unsigned status_register(uint32_t word) { return FIELD(word, 20, 16); }

static bool is_compare_and_swap(const struct a64_access *access, uint32_t word) {
  return access->kind == SLOT_UPDATE && FIELD(word, 29, 24) == 8;
}

static bool is_pair_of_registers(uint32_t word) { return FIELD(word, 23, 23) == 0; }

/* Two registers, of which the second is only one of a pair's. */
static void read_status(const struct guest *guest, uint32_t word, uint64_t status[2]) {
  unsigned number = status_register(word);
  guest_wants_registers(guest, 1u << number | 1u << ((number + 1) & 31));
  for (unsigned i = 0; i < 2; i++)
    status[i] = number + i >= 31 ? 0 : guest_register(guest, number + i);
}

static uint64_t mask_of(uint32_t bytes) {
  return bytes >= 8 ? UINT64_MAX : ((uint64_t)1 << 8 * bytes) - 1;
}

static bool has_happened(const struct guest *guest, const struct watched_access *watched) {
  const struct a64_access *access = &watched->access;
  uint64_t status[2];
  if (!access->is_exclusive && !is_compare_and_swap(access, watched->word))
    return true;
  read_status(guest, watched->word, status);
  if (access->is_exclusive)
    return status[0] == 0;
  bool has_pair = is_pair_of_registers(watched->word);
  uint64_t mask = mask_of(has_pair ? access->bytes / 2u : access->bytes);
  return ((status[0] ^ guest->status_before[0]) & mask) == 0 &&
         (!has_pair || ((status[1] ^ guest->status_before[1]) & mask) == 0);
}

/* Whether QEMU can make it with the other threads running. Those that wait in the recorder for this
 * one could not be stopped. */
static bool runs_beside_others(const struct watched_access *watched, uint64_t address) {
  bool is_in_one_step = watched->access.kind == SLOT_UPDATE || watched->access.is_exclusive;
  return !is_in_one_step || (watched->access.bytes <= 8 && address % watched->access.bytes == 0);
}

static void begin(unsigned vcpu, void *user_data) {
  const struct watched_access *watched = user_data;
  struct guest *guest = the_guest;
  struct thread *thread = &guest->thread;
  (void)vcpu;
  uint64_t address = plan_slot_address(watched->plan, watched->slot, guest->position);
  bool may_wait = watched->has_end && runs_beside_others(watched, address);
  if (watched->orders && write_order_is_kept)
    write_order_before(thread, watched->plan->id, watched->index, may_wait);
  if (watched->has_place && is_compare_and_swap(&watched->access, watched->word))
    read_status(guest, watched->word, guest->status_before);
  guest->watched = watched;
}

static void complete(struct guest *guest) {
  const struct watched_access *watched = guest->watched;
  struct thread *thread = &guest->thread;
  guest->watched = NULL;
  if (watched->has_place)
    values_after_write(thread, &watched->place, has_happened(guest, watched));
  else
    write_order_end(thread);
}

static void end(unsigned vcpu, void *user_data) {
  (void)vcpu, (void)user_data;
  if (the_guest->watched != NULL)
    complete(the_guest);
}

/* Ends the access that the thread was about to make last, if it has not ended. */
static void settle(struct guest *guest, uint64_t stopped_at) {
  const struct watched_access *watched = guest->watched;
  if (watched == NULL)
    return;
  if (watched->pc != stopped_at) {
    complete(guest);
    return;
  }
  guest->watched = NULL;
  write_order_end(&guest->thread);
}

void watched_access_stops(struct guest *guest, uint64_t within_at) {
  settle(guest, within_at);
  if (within_at != NO_ADDRESS)
    interrupt_block(&guest->thread, within_at);
}

static bool writes(const struct a64_access *access) {
  return access->kind == SLOT_STORE || access->kind == SLOT_UPDATE;
}

bool watched_access_ends_block(uint32_t word) {
  struct a64_access access;
  return values_are_recorded && a64_access_of(word, &access) &&
         (writes(&access) || access.kind == SLOT_FLUSH);
}

void watched_access_translate(const struct plan *plan, uint32_t index, uint32_t word,
                              struct qemu_plugin_insn *instruction, struct qemu_plugin_insn *next) {
  struct watched_access watched = {
      .plan = plan, .pc = plan->address + 4 * index, .index = index, .word = word};
  if (!values_are_recorded || !a64_access_of(word, &watched.access))
    return;
  const struct a64_access *access = &watched.access;
  watched.slot = plan_slot(plan, index);
  watched.orders = writes(access) || access->kind == SLOT_FLUSH;
  watched.has_place = values_find_write(plan->id, index, false, &watched.place);
  if (!watched.orders && !watched.has_place)
    return;
  watched.has_end = next != NULL;
  struct watched_access *kept = platform_allocate(sizeof(*kept));
  *kept = watched;
  qemu_plugin_register_vcpu_insn_exec_cb(instruction, begin, CALLBACK_READS_REGISTERS, kept);
  if (watched.has_end)
    qemu_plugin_register_vcpu_insn_exec_cb(next, end, CALLBACK_READS_REGISTERS, NULL);
}
