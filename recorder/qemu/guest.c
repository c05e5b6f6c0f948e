/* SPDX-License-Identifier: Apache-2.0 */
#include "guest.h"

#include "engine.h"
#include "guest_modules.h"
#include "platform.h"
#include "recording.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Created, and not begun yet; more at one time are forgotten. */
#define CREATIONS_MAX 256u
/* How long the process's end waits for a thread that is in the recorder: calls of that take
 * microseconds, but for those that write a frame to a slow disk. */
#define PATIENCE_MS 1000u

__thread struct guest *the_guest __attribute__((tls_model("initial-exec")));

static struct {
  void *lock;
  struct guest *list;
  bool have_ended;
  uint64_t handle_offset;
  struct {
    uint64_t stack_pointer, thread_pointer;
  } creation[CREATIONS_MAX];
  uint32_t next_creation;
} guests;

static void lock(void) {
  if (guests.lock == NULL)
    guests.lock = platform_mutex_create();
  platform_mutex_lock(guests.lock);
}

static void unlock(void) { platform_mutex_unlock(guests.lock); }

void guest_wants_registers(const struct guest *guest, uint32_t mask) {
  (void)guest;
  if (engine_copies_registers())
    engine_copy_registers(mask);
}

void guest_is_created(uint64_t stack_pointer, uint64_t thread_pointer) {
  lock();
  guests.creation[guests.next_creation].stack_pointer = stack_pointer;
  guests.creation[guests.next_creation].thread_pointer = thread_pointer;
  guests.next_creation = (guests.next_creation + 1) % CREATIONS_MAX;
  unlock();
}

static uint64_t created_with(uint64_t stack_pointer) {
  uint64_t thread_pointer = 0;
  lock();
  for (uint32_t i = 0; i < CREATIONS_MAX; i++) {
    if (guests.creation[i].stack_pointer != stack_pointer)
      continue;
    thread_pointer = guests.creation[i].thread_pointer;
    guests.creation[i].stack_pointer = 0;
  }
  unlock();
  return thread_pointer;
}

struct guest *guest_begin(unsigned vcpu) {
  struct guest *guest = platform_allocate(sizeof(*guest));
  memset(guest, 0, sizeof(*guest));
  guest->vcpu = vcpu;
  guest->returns_to = NO_ADDRESS;
  guest->kernel_id = (uint64_t)syscall(SYS_gettid);
  guest->registers = engine_find_registers(vcpu);
  require(guest->registers != NULL, "the registers of a thread cannot be found");
  guest_wants_registers(guest, 1u << A64_STACK_POINTER);
  guest->thread_pointer = created_with(guest_register(guest, A64_STACK_POINTER));
  the_guest = guest;
  bool is_first = thread_begin(&guest->thread, guest, &guest->position, NULL);
  lock();
  guest->next = guests.list;
  guests.list = guest;
  unlock();
  if (is_first)
    guest_modules_send(&guest->thread);
  return guest;
}

void guest_end(void) {
  struct guest *guest = the_guest;
  if (guest == NULL)
    return;
  lock();
  struct guest **link = &guests.list;
  while (*link != NULL && *link != guest)
    link = &(*link)->next;
  bool is_there = *link == guest;
  if (is_there)
    *link = guest->next;
  unlock();
  /* Who ends the process may have ended this thread, too. */
  if (!is_there)
    return;
  the_guest = NULL;
  thread_end(&guest->thread);
  platform_free(guest, sizeof(*guest));
}

void guests_after_fork(void) {
  guests.lock = platform_mutex_create();
  guests.list = the_guest;
  if (the_guest != NULL)
    the_guest->next = NULL;
}

bool guest_enters(struct guest *guest) {
  __atomic_store_n(&guest->is_busy, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&guests.have_ended, __ATOMIC_SEQ_CST))
    return true;
  __atomic_store_n(&guest->is_busy, 0, __ATOMIC_SEQ_CST);
  return false;
}

void guest_leaves(struct guest *guest) { __atomic_store_n(&guest->is_busy, 0, __ATOMIC_SEQ_CST); }

void guests_end_all(void) {
  if (__atomic_exchange_n(&guests.have_ended, true, __ATOMIC_SEQ_CST))
    return;
  lock();
  struct guest *list = guests.list;
  guests.list = NULL;
  unlock();
  for (struct guest *guest = list; guest != NULL; guest = guest->next) {
    for (uint32_t waited_ms = 0; guest != the_guest && waited_ms < PATIENCE_MS &&
                                 __atomic_load_n(&guest->is_busy, __ATOMIC_SEQ_CST) != 0;
         waited_ms++)
      platform_sleep_ms(1);
    thread_end(&guest->thread);
  }
}

void guests_visit_others(void (*visit)(struct thread *thread)) {
  lock();
  for (struct guest *guest = guests.list; guest != NULL; guest = guest->next) {
    if (guest != the_guest)
      visit(&guest->thread);
  }
  unlock();
}

void guest_handles_are_below(uint64_t bytes) { guests.handle_offset = bytes; }

uint64_t guest_thread_handle(const struct guest *guest) {
  return guest->thread_pointer - guests.handle_offset;
}
