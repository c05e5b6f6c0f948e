/* SPDX-License-Identifier: Apache-2.0 */
#include "guest_calls.h"

#include "call_numbers.h"
#include "guest.h"
#include "guest_mappings.h"
#include "guest_modules.h"
#include "platform.h"
#include "process_image.h"
#include "recording.h"
#include "special_blocks.h"
#include "system_calls.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A handler's address is the first word of what the program gives to the kernel. */
static void note_handler(const struct system_call *call, int64_t result) {
  uint64_t handler;
  size_t read;
  if (result == 0 && call->argument[1] != 0 &&
      platform_read((const void *)(uintptr_t)call->argument[1], sizeof(handler), &handler, &read) &&
      handler > (uint64_t)(uintptr_t)SIG_IGN)
    special_block_is_handler(handler);
}

/* A new thread begins with the stack and the thread pointer that its creator gives it. */
static void note_creation(const struct system_call *call) {
  if ((call->argument[0] & CLONE_THREAD) != 0)
    guest_is_created(call->argument[1], call->argument[3]);
}

/* The next address of a page. */
static uint64_t page_up(uint64_t bytes) {
  uint64_t page = platform_page_bytes();
  return (bytes + page - 1) / page * page;
}

static void note_mapping(const struct system_call *call, int64_t result) {
  const uint64_t *argument = call->argument;
  if (result < 0 && result >= -4095)
    return;
  if (call->number == A64_MMAP) {
    guest_mapping_begins((uint64_t)result, page_up(argument[1]));
  } else if (call->number == A64_MUNMAP) {
    guest_mapping_ends(argument[0], page_up(argument[1]));
  } else if (call->number == A64_MREMAP) {
    guest_mapping_ends(argument[0], page_up(argument[1]));
    guest_mapping_begins((uint64_t)result, page_up(argument[2]));
  }
}

static bool makes_child(const struct system_call *call) {
  return call->number == A64_CLONE && (call->argument[0] & CLONE_THREAD) == 0;
}

void guest_call_begins(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                       uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
                       uint64_t a8) {
  struct guest *guest = the_guest;
  (void)id, (void)vcpu, (void)a7, (void)a8;
  if (guest == NULL || !guest_enters(guest))
    return;
  struct thread *thread = &guest->thread;
  if (number == A64_RT_SIGRETURN) {
    special_block_handler_returns(guest);
  } else if (thread->is_recorded) {
    struct system_call *call = &thread->system_call;
    *call = (struct system_call){.number = (int)number, .argument = {a1, a2, a3, a4, a5, a6}};
    if (number == A64_CLONE)
      note_creation(call);
    guest->has_asked_to_end = number == A64_EXIT_GROUP;
    system_call_begins(thread, call);
  }
  if (number == A64_EXIT)
    guest_end();
  else
    guest_leaves(guest);
}

/* In the child of a fork: recorded it is not, and its parent's record is not its own. */
static void begin_child(struct guest *guest) {
  guests_after_fork();
  guest_mappings_after_fork();
  special_blocks_after_fork();
  plans_after_fork();
  process_image_forks(&guest->thread);
}

void guest_call_ends(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result) {
  struct guest *guest = the_guest;
  (void)id, (void)vcpu;
  if (guest == NULL || !guest_enters(guest))
    return;
  struct thread *thread = &guest->thread;
  struct system_call *call = &thread->system_call;
  if (thread->is_recorded && call->number == number && number != A64_RT_SIGRETURN) {
    if (makes_child(call) && result == 0 && process_id_of_caller() != recording.process) {
      begin_child(guest);
      guest_leaves(guest);
      return;
    }
    note_mapping(call, result);
    system_call_ends(thread, call, result);
    if (number == A64_RT_SIGACTION)
      note_handler(call, result);
    else if (number == A64_MMAP && result >= 0 && (call->argument[2] & PROT_EXEC) != 0)
      guest_module_is_mapped(thread, (uint64_t)result);
  }
  guest_leaves(guest);
}
