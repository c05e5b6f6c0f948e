/* SPDX-License-Identifier: Apache-2.0 */
#include "system_calls.h"

#include "child_end.h"
#include "fields.h"
#include "futex.h"
#include "instruction_set.h"
#include "kernel_writes.h"
#include "mapped_files.h"
#include "memory_map.h"
#include "persist_calls.h"
#include "platform.h"
#include "process_image.h"
#include "record_format.h"
#include "recording.h"
#include "stream_ends.h"
#include "supplies.h"
#include "thread_identity.h"
#include "unrecorded_children.h"

#include <errno.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static uint64_t page_up(uint64_t bytes) {
  uint64_t page = platform_page_bytes();
  return (bytes + page - 1) / page * page;
}

static uint8_t record_protection(uint64_t protection) {
  return (uint8_t)(((protection & PROT_READ) != 0 ? 1 : 0) |
                   ((protection & PROT_WRITE) != 0 ? 2 : 0) |
                   ((protection & PROT_EXEC) != 0 ? 4 : 0));
}

static void after_mmap(struct thread *thread, const struct system_call *call, int64_t result) {
  uint64_t flags = call->argument[3];
  if ((flags & MAP_ANONYMOUS) == 0) {
    memory_map_send_at(thread, (uint64_t)result, page_up(call->argument[1]));
    return;
  }
  uint8_t kind = (flags & (MAP_STACK | MAP_GROWSDOWN)) != 0 ? MAP_KIND_STACK : MAP_KIND_ANONYMOUS;
  memory_map_send_anonymous(thread, (uint64_t)result, page_up(call->argument[1]),
                            record_protection(call->argument[2]), kind);
}

static void after_mremap(struct thread *thread, const struct system_call *call, int64_t result) {
  memory_map_send_unmap(thread, call->clock, call->argument[0], page_up(call->argument[1]));
  memory_map_send_at(thread, (uint64_t)result, page_up(call->argument[2]));
}

static uint64_t clone_flags(const struct system_call *call) {
  if (call->x86_64 != SYS_clone3)
    return call->argument[0];
  uint64_t flags = 0;
  size_t read;
  platform_read((void *)(uintptr_t)call->argument[0], sizeof(flags), &flags, &read);
  return flags;
}

static void send_fork(struct thread *thread, int64_t child, bool shares_memory) {
  /* It may have told of itself, and of what it runs, before. With --children it has a record as
   * soon as it has memory of its own. */
  if (!recording.area->children || shares_memory) {
    unrecorded_child_runs((int32_t)child, NULL);
    if (shares_memory || memory_map_is_shared())
      unrecorded_child_shares_memory((int32_t)child);
  }
  if (baton_has(thread) && !shares_memory)
    baton_await_process(thread, (int32_t)child);
  int32_t number = recording_number(recording_of_process((int32_t)child));
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, number > 0 ? (uint64_t)number : 0);
  fields_send(&fields, thread, EVENT_FORK);
}

static void after_clone(struct thread *thread, const struct system_call *call, int64_t result) {
  if ((call->flags & CLONE_THREAD) == 0) {
    send_fork(thread, result, (call->flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM);
    return;
  }
  if (baton_has(thread))
    baton_await_join();
  uint32_t created = thread_identity_created((uint64_t)result);
  if (thread->call_depth > 0) {
    thread->call.created = created; /* pthread_create tells of it when it is done */
    return;
  }
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, created);
  fields_send_clocked(&fields, thread, EVENT_THREAD_CREATE, call->clock);
}

/* What has to be known from before the call. */
static void before(struct thread *thread, struct system_call *call) {
  switch (call->x86_64) {
  case SYS_clone:
  case SYS_clone3:
    if ((call->flags & CLONE_THREAD) != 0) {
      write_order_begin();
    }
    if (thread->call_depth == 0 && (call->flags & CLONE_THREAD) != 0)
      call->clock = clock_advance();
    break;
  case SYS_munmap:
  case SYS_mremap:
    call->clock = clock_advance();
    break;
  case SYS_futex:
    futex_before(thread, call);
    break;
  case SYS_exit:
    thread_identities_await_starts();
    break;
  case SYS_execve:
  case SYS_execveat:
    if (baton_is_passed)
      stream_ends_before_call(thread, call); /* Behind that nothing is recorded any more. */
    process_image_before_exec(thread, call);
    break;
  case SYS_exit_group:
    process_image_exits((int)call->argument[0]);
    break;
  case SYS_ftruncate:
    call->flags = mapped_file_size((int)call->argument[0]);
    break;
  default:
    break;
  }
}

static void after(struct thread *thread, struct system_call *call, int64_t result) {
  bool is_error = result < 0 && result >= -4095;
  switch (call->x86_64) {
  case SYS_mmap:
    if (!is_error)
      after_mmap(thread, call, result);
    break;
  case SYS_munmap:
    if (!is_error)
      memory_map_send_unmap(thread, call->clock, call->argument[0], page_up(call->argument[1]));
    break;
  case SYS_mremap:
    if (!is_error)
      after_mremap(thread, call, result);
    break;
  case SYS_shmat:
    if (!is_error)
      memory_map_send_at(thread, (uint64_t)result, 0);
    break;
  case SYS_brk:
    memory_map_break_is(thread, page_up((uint64_t)result));
    break;
  case SYS_clone:
  case SYS_clone3:
    if (result > 0)
      after_clone(thread, call, result);
    break;
  case SYS_fork:
  case SYS_vfork:
    if (result > 0)
      send_fork(thread, result, false);
    break;
  case SYS_futex:
    futex_after(thread, call, result);
    break;
  case SYS_wait4:
  case SYS_waitid:
    child_end_after_wait(thread, call, result);
    break;
  case SYS_execve:
  case SYS_execveat:
    process_image_after_failed_exec(thread);
    break;
  default:
    break;
  }
}

/* What the record has of it: the kernel's ids differ from one recording to the next. */
static int64_t recorded_result(const struct system_call *call, int64_t result) {
  if (!baton_is_passed || result < 0)
    return result;
  switch (call->x86_64) {
  case SYS_set_tid_address:
  case SYS_gettid:
  case SYS_getpid:
  case SYS_getppid:
  case SYS_clone:
  case SYS_clone3:
  case SYS_fork:
  case SYS_vfork:
  case SYS_wait4:
  case SYS_msgget:
  case SYS_semget:
  case SYS_shmget:
    return result != 0;
  default:
    return result;
  }
}

void system_call_identify(struct system_call *call) {
  call->x86_64 = instruction_set.x86_64_call(call->number);
  bool is_clone = call->x86_64 == SYS_clone || call->x86_64 == SYS_clone3;
  call->flags = is_clone ? clone_flags(call) : 0;
}

void system_call_begins(struct thread *thread, struct system_call *call) {
  write_order_send(thread);
  system_call_identify(call);
  call->clock = 0;
  before(thread, call);
}

void system_call_ends(struct thread *thread, struct system_call *call, int64_t result) {
  after(thread, call, result);
  if (baton_is_passed)
    supplies_consumed(thread, call, result);
  persist_call_after(thread, call, result);
  kernel_writes_after_call(thread, call, result);
  if (thread->call_depth > 0)
    return;
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, (uint64_t)call->number);
  fields_signed(&fields, recorded_result(call, result));
  fields_send(&fields, thread, EVENT_SYSTEM_CALL);
  if (baton_is_passed)
    supplies_made(thread, call, result);
}
