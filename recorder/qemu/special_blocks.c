/* SPDX-License-Identifier: Apache-2.0 */
#include "special_blocks.h"

#include "address_map.h"
#include "arena.h"
#include "fields.h"
#include "platform.h"
#include "record_format.h"
#include "region_of_interest.h"
#include "synchronisation.h"
#include "watched_accesses.h"

#include <signal.h>
#include <string.h>

enum region_boundary { REGION_BEGINS = 1, REGION_ENDS = 2 };

/* What is known of an address before code there is translated. */
struct place {
  const struct function *function;
  uint8_t region;
  bool may_be_handler;
};

static struct {
  void *lock;
  struct address_map by_address;
  struct arena memory;
} places;

void special_blocks_init(void) { places.lock = platform_mutex_create(); }

void special_blocks_after_fork(void) { places.lock = platform_mutex_create(); }

/* To be called with the lock. */
static struct place *place_at(uint64_t address) {
  struct place *place = address_map_find(&places.by_address, address);
  if (place != NULL)
    return place;
  place = arena_allocate(&places.memory, sizeof(*place));
  memset(place, 0, sizeof(*place));
  address_map_set(&places.by_address, address, place);
  return place;
}

/* Of an instruction that accesses memory in one step, alone in its block: the engine may have met
 * it before, and left the block to execute it with all other threads standing still. */
static bool may_be_second_try(const struct plan *plan, uint32_t word) {
  struct a64_access access;
  return plan->instructions == 1 && a64_access_of(word, &access) &&
         (access.is_exclusive || a64_is_atomic_update(word) || access.bytes > 8);
}

static void complete(struct plan *plan) {
  platform_mutex_lock(places.lock);
  const struct place *place = address_map_find(&places.by_address, plan->address);
  if (place != NULL) {
    plan->function = place->function;
    plan->region = place->region;
    plan->may_be_handler = place->may_be_handler;
  }
  platform_mutex_unlock(places.lock);
  plan->is_special = plan->function != NULL || plan->region != 0 || plan->may_be_handler ||
                     plan->may_be_second_try;
}

void special_block_describe(struct plan *plan, uint32_t word) {
  plan->may_be_second_try = may_be_second_try(plan, word);
  complete(plan);
}

bool special_block_begins_at(uint64_t address) {
  platform_mutex_lock(places.lock);
  bool begins = address_map_find(&places.by_address, address) != NULL;
  platform_mutex_unlock(places.lock);
  return begins;
}

void special_block_is_function(uint64_t address, const char *name, bool may_synchronise) {
  const struct function *function = may_synchronise ? synchronisation_function(name) : NULL;
  uint8_t region = (region_of_interest_begins_at(name) ? REGION_BEGINS : 0) |
                   (region_of_interest_ends_at(name) ? REGION_ENDS : 0);
  if (function == NULL && region == 0)
    return;
  platform_mutex_lock(places.lock);
  struct place *place = place_at(address);
  /* Versions of a function may be the same code. */
  if (place->function == NULL)
    place->function = function;
  place->region |= region;
  platform_mutex_unlock(places.lock);
}

void special_block_is_handler(uint64_t address) {
  platform_mutex_lock(places.lock);
  place_at(address)->may_be_handler = true;
  platform_mutex_unlock(places.lock);
  plans_at(address, complete);
}

static void watch_return(struct guest *guest) {
  guest->returns_to =
      guest->open_calls == 0 ? NO_ADDRESS : guest->open_call[guest->open_calls - 1].return_address;
}

static void close_call(struct guest *guest, const int *result) {
  const struct open_call *call = &guest->open_call[--guest->open_calls];
  if (call->function != NULL)
    synchronisation_call_returns(&guest->thread, call->function, result);
  else
    region_of_interest_end(&guest->thread);
  watch_return(guest);
}

/* Calls below whose frames the stack pointer has risen have been left without a return. */
static void close_left_calls(struct guest *guest, uint64_t stack_pointer) {
  while (guest->open_calls > 0 &&
         guest->open_call[guest->open_calls - 1].stack_pointer < stack_pointer)
    close_call(guest, NULL);
}

static void open_call(struct guest *guest, const struct function *function) {
  if (guest->open_calls == OPEN_CALLS_MAX)
    return;
  guest->open_call[guest->open_calls++] = (struct open_call){
      function, guest_register(guest, A64_LINK), guest_register(guest, A64_STACK_POINTER)};
  watch_return(guest);
}

static void begin_call(struct guest *guest, const struct function *function) {
  struct thread *thread = &guest->thread;
  uint64_t stack_pointer = guest_register(guest, A64_STACK_POINTER);
  close_left_calls(guest, stack_pointer);
  /* One that cannot be followed to its return is as if it were not there. */
  if (guest->open_calls == OPEN_CALLS_MAX || !thread->is_recorded)
    return;
  bool is_outermost = synchronisation_call_begins(thread, stack_pointer);
  open_call(guest, function);
  if (!is_outermost)
    return;
  thread->call.return_address = guest_register(guest, A64_LINK);
  for (unsigned i = 0; i < CALL_ARGUMENTS; i++)
    thread->call.argument[i] = guest_register(guest, i);
  synchronisation_call_enters(thread, function);
}

/* Functions may have called each other as their last act: then all return at once. */
static void end_calls(struct guest *guest, uint64_t address) {
  uint64_t stack_pointer = guest_register(guest, A64_STACK_POINTER);
  int result = (int)guest_register(guest, 0);
  close_left_calls(guest, stack_pointer);
  while (guest->open_calls > 0) {
    const struct open_call *call = &guest->open_call[guest->open_calls - 1];
    if (call->return_address != address || call->stack_pointer != stack_pointer)
      return;
    close_call(guest, &result);
  }
}

static void pass_region(struct guest *guest, uint8_t region) {
  if ((region & REGION_BEGINS) != 0) {
    region_of_interest_begin(&guest->thread);
    if ((region & REGION_ENDS) != 0)
      open_call(guest, NULL);
  } else {
    region_of_interest_end(&guest->thread);
  }
}

/* The kernel's frame for a handler, at its stack pointer: siginfo, then the context, in which the
 * program counter stands behind flags, links, stack, mask, and the other registers. */
#define FRAME_CONTEXT 128u
#define CONTEXT_PROGRAM_COUNTER 440u
/* Where handlers return to: mov x8, #139; svc #0. */
static const uint32_t return_from_handler[] = {0xd2801168, 0xd4000001};

/* Whether an instruction has brought the signal about. QEMU tells only handlers with SA_SIGINFO who
 * has sent it. */
static bool is_fault(int number, const siginfo_t *information) {
  bool is_told = information->si_signo == number;
  return (!is_told || information->si_code > 0) &&
         (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
          number == SIGTRAP);
}

/* Whether a signal begins here, and not a function that is called. */
static bool is_entered_by_signal(const struct guest *guest, siginfo_t *information,
                                 uint64_t *interrupted) {
  uint64_t frame = guest_register(guest, A64_STACK_POINTER), link = guest_register(guest, A64_LINK);
  uint32_t code[2];
  size_t read;
  if (!platform_read((const void *)(uintptr_t)link, sizeof(code), code, &read) ||
      memcmp(code, return_from_handler, sizeof(code)) != 0 ||
      !platform_read((const void *)(uintptr_t)frame, sizeof(*information), information, &read))
    return false;
  return platform_read((const void *)(uintptr_t)(frame + FRAME_CONTEXT + CONTEXT_PROGRAM_COUNTER),
                       sizeof(*interrupted), interrupted, &read);
}

static void begin_handler(struct guest *guest) {
  siginfo_t information;
  uint64_t interrupted;
  if (!is_entered_by_signal(guest, &information, &interrupted)) {
    watched_access_stops(guest, NO_ADDRESS);
    return;
  }
  /* Other signals come between two blocks. */
  int number = (int)guest_register(guest, 0);
  watched_access_stops(guest, is_fault(number, &information) ? interrupted : NO_ADDRESS);
  if (!guest->thread.is_recorded)
    return;
  synchronisation_suspend_call(&guest->thread);
  if (guest->open_calls < OPEN_CALLS_MAX) {
    /* What returns while the handler runs is its own. */
    guest->open_call[guest->open_calls++] = (struct open_call){NULL, NO_ADDRESS, UINT64_MAX};
    watch_return(guest);
  }
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, (uint64_t)number);
  fields_send(&fields, &guest->thread, EVENT_SIGNAL);
}

void special_block_handler_returns(struct guest *guest) {
  if (!guest->thread.is_recorded)
    return;
  while (guest->open_calls > 0) {
    const struct open_call *call = &guest->open_call[guest->open_calls - 1];
    bool is_barrier = call->stack_pointer == UINT64_MAX;
    if (is_barrier)
      guest->open_calls--;
    else
      close_call(guest, NULL);
    if (is_barrier)
      break;
  }
  watch_return(guest);
  synchronisation_resume_call(&guest->thread);
}

void special_block_begins(struct guest *guest, const struct plan *plan) {
  if (plan->may_be_handler)
    begin_handler(guest);
  watched_access_stops(guest, plan->may_be_second_try ? plan->address : NO_ADDRESS);
  if (plan->address == guest->returns_to)
    end_calls(guest, plan->address);
  if (plan->region != 0)
    pass_region(guest, plan->region);
  if (plan->function != NULL)
    begin_call(guest, plan->function);
}
