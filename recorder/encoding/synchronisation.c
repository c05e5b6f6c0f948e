/* SPDX-License-Identifier: Apache-2.0 */
#include "synchronisation.h"

#include "arena.h"
#include "call_path.h"
#include "fields.h"
#include "held_locks.h"
#include "platform.h"
#include "raw_words.h"
#include "record_format.h"
#include "recording.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "supplies.h"
#include "thread_identity.h"
#include "values.h"
#include "wake_pairing.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Where a function's event stands in its path, so that a replay can arbitrate anew, and whose path
 * that is. */
enum kind {
  SETS_UP,  /* it has no event: its inside is work like any other */
  ACQUIRES, /* before the path that takes what it waits for */
  RELEASES, /* behind it */
  CREATES,  /* behind it; what it executes is always its own */
  JOINS,    /* before it, likewise */
  WAITS,    /* at the wait in the middle: it releases before and acquires behind it, on each call */
};

/* How a function is recorded: before it runs, and from its result. */
struct function {
  enum kind kind;
  const char *name;
  void (*before)(struct thread *thread, struct call *call);
  void (*after)(struct thread *thread, struct call *call, int result);
  uint8_t event;
  uint8_t kind_at; /* in its object, where the C library keeps what kind it is of; 0: nowhere */
};

#define MUTEX_KIND_AT 16
#define RWLOCK_KIND_AT 48

static void send_object(struct thread *thread, uint8_t type, uint64_t clock, uint64_t object) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, object);
  fields_send_clocked(&fields, thread, type, clock);
}

static bool was_acquired(int result) { return result == 0 || result == EOWNERDEAD; }

/* Releases happen before the function returns: another thread may have acquired by then. */
static void before_release(struct thread *thread, struct call *call) {
  call->clock = clock_advance();
}

static void after_release(struct thread *thread, struct call *call, int result) {
  if (result != 0)
    return;
  send_object(thread, call->function->event, call->clock, call->argument[0]);
  held_locks_release(thread, call->argument[0]);
}

static void after_acquire(struct thread *thread, struct call *call, int result) {
  uint8_t event = was_acquired(result) ? call->function->event : (uint8_t)EVENT_ATTEMPT_FAILED;
  send_object(thread, event, clock_advance(), call->argument[0]);
  if (was_acquired(result))
    held_locks_acquire(thread, call->argument[0], event);
}

static void after_spin_lock(struct thread *thread, struct call *call, int result) {
  if (result == 0)
    spin_lock_taken(call->argument[0]);
  after_acquire(thread, call, result);
}

static void before_spin_unlock(struct thread *thread, struct call *call) {
  call->clock = spin_lock_released(call->argument[0]) ? clock_advance() : 0;
}

static void after_spin_unlock(struct thread *thread, struct call *call, int result) {
  if (call->clock != 0)
    after_release(thread, call, result);
}

static void before_wait(struct thread *thread, struct call *call) {
  call->clock = wait_begins(call->argument[0]);
}

static void after_wait(struct thread *thread, struct call *call, int result) {
  bool is_woken = was_acquired(result), is_timeout = result == ETIMEDOUT;
  uint64_t wake = wait_ends(call->argument[0], call->clock, is_woken);
  struct fields fields;
  if (!is_woken && !is_timeout)
    return;
  fields_begin(&fields);
  fields_number(&fields, call->argument[0]);
  fields_number(&fields, call->argument[1]);
  fields_number(&fields, region_of_interest_clock(wake));
  fields_byte(&fields, is_timeout);
  fields_send_clocked(&fields, thread, EVENT_CONDITION_WAIT, clock_advance());
}

static void before_signal(struct thread *thread, struct call *call) {
  call->clock = signal_happens(call->argument[0]);
}

static void before_broadcast(struct thread *thread, struct call *call) {
  call->clock = wake_happens(call->argument[0], WAKE_ALL);
}

/* The number of tokens is the lower half of the object's first word, in every libc that has sem_t
 * of 32 bytes. */
static uint32_t semaphore_value(uint64_t object) {
  uint32_t value = 0;
  size_t read;
  if (!platform_read((void *)(uintptr_t)object, sizeof(value), &value, &read))
    return 0;
  return value;
}

static void after_semaphore_init(struct thread *thread, struct call *call, int result) {
  if (result == 0)
    semaphore_initialised(call->argument[0], (uint32_t)call->argument[2]);
}

static void before_semaphore_post(struct thread *thread, struct call *call) {
  call->clock = semaphore_posts(call->argument[0], semaphore_value(call->argument[0]));
}

static void before_semaphore_wait(struct thread *thread, struct call *call) {
  semaphore_seen(call->argument[0], semaphore_value(call->argument[0]));
}

static void after_semaphore_wait(struct thread *thread, struct call *call, int result) {
  if (result != 0) {
    send_object(thread, EVENT_ATTEMPT_FAILED, clock_advance(), call->argument[0]);
    return;
  }
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, call->argument[0]);
  fields_number(&fields, region_of_interest_clock(semaphore_takes(call->argument[0])));
  fields_send_clocked(&fields, thread, EVENT_SEMAPHORE_WAIT, clock_advance());
}

static void after_barrier_init(struct thread *thread, struct call *call, int result) {
  if (result == 0)
    barrier_initialised(call->argument[0], (uint32_t)call->argument[2]);
}

/* An arrival is a release, so its place is where it arrives; the generation needs it in order, too.
 */
static void before_barrier(struct thread *thread, struct call *call) {
  call->clock = clock_advance();
  barrier_arrives(call->argument[0], &call->participants, &call->generation);
}

static void after_barrier(struct thread *thread, struct call *call, int result) {
  if (result != 0 && result != PTHREAD_BARRIER_SERIAL_THREAD)
    return;
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, call->argument[0]);
  fields_number(&fields, call->participants);
  fields_number(&fields, call->generation);
  fields_send_clocked(&fields, thread, EVENT_BARRIER_WAIT, call->clock);
}

static uint64_t read_handle(uint64_t address) {
  uint64_t handle = 0;
  size_t read;
  platform_read((void *)(uintptr_t)address, sizeof(handle), &handle, &read);
  return handle;
}

/* The new thread must come after its creation, so the place is taken before. It may join its
 * creator, whom nobody has created where that is the first thread. */
static void before_create(struct thread *thread, struct call *call) {
  thread_handle_set(thread_pointer(thread), thread->id);
  call->clock = clock_advance();
  call->created = NO_THREAD;
}

static void after_create(struct thread *thread, struct call *call, int result) {
  if (result != 0 || call->created == NO_THREAD)
    return;
  thread_handle_set(read_handle(call->argument[0]), call->created);
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, call->created);
  fields_send_clocked(&fields, thread, EVENT_THREAD_CREATE, call->clock);
}

static void before_join(struct thread *thread, struct call *call) {
  call->created = thread_handle_find(call->argument[0]);
}

static void after_join(struct thread *thread, struct call *call, int result) {
  if (result != 0 || call->created == NO_THREAD)
    return;
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, call->created);
  fields_send_clocked(&fields, thread, EVENT_THREAD_JOIN, clock_advance());
}

static const struct function functions[] = {
    {CREATES, "pthread_create", before_create, after_create, 0},
    {JOINS, "pthread_join", before_join, after_join, 0},
    {JOINS, "pthread_tryjoin_np", before_join, after_join, 0},
    {JOINS, "pthread_timedjoin_np", before_join, after_join, 0},
    {JOINS, "pthread_clockjoin_np", before_join, after_join, 0},
    {JOINS, "thrd_join", before_join, after_join, 0},
    {ACQUIRES, "pthread_mutex_lock", NULL, after_acquire, EVENT_MUTEX_LOCK, MUTEX_KIND_AT},
    {ACQUIRES, "pthread_mutex_trylock", NULL, after_acquire, EVENT_MUTEX_LOCK, MUTEX_KIND_AT},
    {ACQUIRES, "pthread_mutex_timedlock", NULL, after_acquire, EVENT_MUTEX_LOCK, MUTEX_KIND_AT},
    {ACQUIRES, "pthread_mutex_clocklock", NULL, after_acquire, EVENT_MUTEX_LOCK, MUTEX_KIND_AT},
    {RELEASES, "pthread_mutex_unlock", before_release, after_release, EVENT_MUTEX_UNLOCK,
     MUTEX_KIND_AT},
    {ACQUIRES, "pthread_spin_lock", NULL, after_spin_lock, EVENT_SPIN_LOCK},
    {ACQUIRES, "pthread_spin_trylock", NULL, after_spin_lock, EVENT_SPIN_LOCK},
    {RELEASES, "pthread_spin_unlock", before_spin_unlock, after_spin_unlock, EVENT_SPIN_UNLOCK},
    {ACQUIRES, "pthread_rwlock_rdlock", NULL, after_acquire, EVENT_READ_LOCK, RWLOCK_KIND_AT},
    {ACQUIRES, "pthread_rwlock_tryrdlock", NULL, after_acquire, EVENT_READ_LOCK, RWLOCK_KIND_AT},
    {ACQUIRES, "pthread_rwlock_timedrdlock", NULL, after_acquire, EVENT_READ_LOCK, RWLOCK_KIND_AT},
    {ACQUIRES, "pthread_rwlock_clockrdlock", NULL, after_acquire, EVENT_READ_LOCK, RWLOCK_KIND_AT},
    {ACQUIRES, "pthread_rwlock_wrlock", NULL, after_acquire, EVENT_WRITE_LOCK, RWLOCK_KIND_AT},
    {ACQUIRES, "pthread_rwlock_trywrlock", NULL, after_acquire, EVENT_WRITE_LOCK, RWLOCK_KIND_AT},
    {ACQUIRES, "pthread_rwlock_timedwrlock", NULL, after_acquire, EVENT_WRITE_LOCK, RWLOCK_KIND_AT},
    {ACQUIRES, "pthread_rwlock_clockwrlock", NULL, after_acquire, EVENT_WRITE_LOCK, RWLOCK_KIND_AT},
    {RELEASES, "pthread_rwlock_unlock", before_release, after_release, EVENT_RW_UNLOCK,
     RWLOCK_KIND_AT},
    {WAITS, "pthread_cond_wait", before_wait, after_wait, 0},
    {WAITS, "pthread_cond_timedwait", before_wait, after_wait, 0},
    {WAITS, "pthread_cond_clockwait", before_wait, after_wait, 0},
    {RELEASES, "pthread_cond_signal", before_signal, after_release, EVENT_CONDITION_SIGNAL},
    {RELEASES, "pthread_cond_broadcast", before_broadcast, after_release,
     EVENT_CONDITION_BROADCAST},
    {SETS_UP, "sem_init", NULL, after_semaphore_init, 0},
    {RELEASES, "sem_post", before_semaphore_post, after_release, EVENT_SEMAPHORE_POST},
    {ACQUIRES, "sem_wait", before_semaphore_wait, after_semaphore_wait, 0},
    {ACQUIRES, "sem_trywait", before_semaphore_wait, after_semaphore_wait, 0},
    {ACQUIRES, "sem_timedwait", before_semaphore_wait, after_semaphore_wait, 0},
    {ACQUIRES, "sem_clockwait", before_semaphore_wait, after_semaphore_wait, 0},
    {SETS_UP, "pthread_barrier_init", NULL, after_barrier_init, 0},
    {WAITS, "pthread_barrier_wait", before_barrier, after_barrier, 0},
};
#define FUNCTION_COUNT (sizeof(functions) / sizeof(functions[0]))

static struct known_paths known_paths[FUNCTION_COUNT];

static void send_event(struct thread *thread, int result) {
  thread->call.function->after(thread, &thread->call, result);
}

/* The path of the call that has returned, between the events that say where it begins and ends, and
 * the call's own event in its place. */
static void send_path(struct thread *thread, int result) {
  const struct function *function = thread->call.function;
  bool has_own = function->kind == CREATES || function->kind == JOINS;
  struct known_paths *known = has_own ? NULL : &known_paths[function - functions];
  struct call_path path = call_path_take(thread, known);
  thread_event(thread, EVENT_CALL_BEGIN, NULL, 0);
  if (function->kind == ACQUIRES || function->kind == JOINS)
    send_event(thread, result);
  thread_append(thread, path.words, path.before);
  if (function->kind == WAITS)
    send_event(thread, result);
  thread_append(thread, path.words + path.before, path.after);
  if (function->kind == RELEASES || function->kind == CREATES)
    send_event(thread, result);
  thread_event(thread, EVENT_CALL_END, NULL, 0);
}

/* Where the call that goes on has returned, if it has: the engine may miss it, where another thread
 * makes the code behind the call anew at that moment. */
static uint64_t *find_return(const struct thread *thread) {
  uint64_t *at = thread->call_position;
  for (; at < *thread->position; at += raw_words_of(at)) {
    if (!word_is_marker(*at) &&
        code_table_get((uint32_t)*at)->address == thread->call.return_address)
      return at;
  }
  return NULL;
}

/* The call has returned at `returned`, unnoticed; what stands there and behind is the program's. */
static void complete_call(struct thread *thread, uint64_t *returned) {
  size_t count = (size_t)(*thread->position - returned);
  uint64_t *rest = pages_allocate(count * sizeof(uint64_t));
  memcpy(rest, returned, count * sizeof(uint64_t));
  *thread->position = returned;
  send_path(thread, 0);
  for (size_t at = 0, words; at < count; at += words) {
    words = raw_words_of(rest + at);
    thread_append(thread, rest + at, words);
  }
  pages_free(rest, count * sizeof(uint64_t));
}

/* Whether the call that goes on has ended is seen where the stack is no longer below it: the
 * functions also leave by a jump out of them (longjmp, cancellation). */
static void leave_ended_call(struct thread *thread, uint64_t stack_pointer) {
  if (thread->call_depth == 0 || stack_pointer < thread->call.stack_pointer)
    return;
  bool is_followed = thread->call_position != NULL && !values_are_recorded &&
                     thread->call.function->kind != SETS_UP;
  uint64_t *returned = is_followed ? find_return(thread) : NULL;
  if (returned == NULL && stack_pointer == thread->call.stack_pointer)
    return;
  thread->call_depth = 0;
  if (returned != NULL)
    complete_call(thread, returned);
  thread->call_position = NULL;
}

const struct function *synchronisation_function(const char *name) {
  for (size_t i = 0; i < FUNCTION_COUNT; i++) {
    if (strcmp(functions[i].name, name) == 0)
      return &functions[i];
  }
  return NULL;
}

bool synchronisation_call_begins(struct thread *thread, uint64_t stack_pointer) {
  if (!thread_is_followed(thread))
    return false;
  leave_ended_call(thread, stack_pointer);
  write_order_send(thread);
  if (thread->call_depth++ > 0)
    return false;
  thread->call.stack_pointer = stack_pointer;
  return true;
}

static void follow_inside(struct thread *thread) {
  const struct function *function = thread->call.function;
  call_path_begin(thread, function->before == before_wait ? 2 : 1, function->kind_at,
                  function->kind == WAITS);
  thread->call_position = *thread->position;
}

void synchronisation_call_enters(struct thread *thread, const struct function *function) {
  struct call *call = &thread->call;
  call->function = function;
  if (function->before != NULL)
    function->before(thread, call);
  if (thread->is_recorded)
    follow_inside(thread);
}

void synchronisation_recorded_from_here(struct thread *thread) {
  held_locks_send(thread);
  if (thread->call_depth == 0)
    return;
  struct call *call = &thread->call;
  if (call->function->before == before_barrier &&
      barrier_has_opened(call->argument[0], call->generation))
    call->function = NULL; /* Others have passed it before. */
  else
    follow_inside(thread);
}

void synchronisation_call_returns(struct thread *thread, const struct function *function,
                                  const int *result) {
  if (!thread_is_followed(thread) || thread->call_depth == 0 || --thread->call_depth > 0 ||
      thread->call.function != function)
    return;
  if (thread->call_position == NULL) {
    if (result != NULL)
      send_event(thread, *result);
    else if (function->before == before_wait)
      wait_ends(thread->call.argument[0], thread->call.clock, false);
    return;
  }
  if (result != NULL && !values_are_recorded && function->kind != SETS_UP) {
    send_path(thread, *result);
    return;
  }
  /* What it wrote goes by its event, where the order of writes is kept: a path has its event before
   * or behind writes that others may have seen on the other side of it. */
  if (result == NULL || values_are_recorded)
    call_path_drop(thread);
  thread->call_position = NULL;
  values_send_of_call(thread);
  if (result != NULL)
    send_event(thread, *result);
  else if (function->before == before_wait)
    wait_ends(thread->call.argument[0], thread->call.clock, false);
}

void synchronisation_suspend_call(struct thread *thread) {
  if (thread->suspended_count == SUSPENDED_CALLS_MAX)
    return;
  struct suspended_call *suspended = &thread->suspended[thread->suspended_count++];
  suspended->depth = thread->call_depth;
  if (thread->call_position != NULL)
    call_path_drop(thread);
  suspended->call = thread->call;
  thread->call_depth = 0;
  thread->call_position = NULL;
}

void synchronisation_resume_call(struct thread *thread) {
  if (thread->suspended_count == 0)
    return;
  const struct suspended_call *suspended = &thread->suspended[--thread->suspended_count];
  thread->call = suspended->call;
  thread->call_depth = suspended->depth;
  thread->call_position = suspended->depth > 0 && thread->is_recorded ? *thread->position : NULL;
}

void synchronisation_init(void) {
  wake_pairing_init();
  call_paths_init();
}

void synchronisation_exit(void) {
  call_paths_exit();
  wake_pairing_exit();
  supplies_exit();
}
