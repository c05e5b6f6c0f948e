/* SPDX-License-Identifier: Apache-2.0 */
#include "sent_signals.h"

#include "channel_key.h"
#include "channels.h"
#include "platform.h"
#include "raw_system_call.h"
#include "recording.h"
#include "region_of_interest.h"

#include <signal.h>
#include <sys/syscall.h>

#define SIGNAL_QUEUED_MIN 32u
/* Newer than the headers may be. */
#define CALL_PIDFD_SEND_SIGNAL 424

/* Whom a call signals, as kill has it, and which thread of it (0: any). */
struct target {
  int32_t process;
  int32_t thread;
  uint32_t number;
};

static struct target target_of(const struct system_call *call) {
  const uint64_t *argument = call->argument;
  int32_t first = (int32_t)argument[0], second = (int32_t)argument[1];
  uint64_t process;
  switch (call->x86_64) {
  case SYS_kill:
  case SYS_rt_sigqueueinfo:
    return (struct target){first, 0, (uint32_t)second};
  case SYS_tkill:
    return (struct target){0, first, (uint32_t)second};
  case SYS_tgkill:
  case SYS_rt_tgsigqueueinfo:
    return (struct target){first, second, (uint32_t)argument[2]};
  case CALL_PIDFD_SEND_SIGNAL:
    if (descriptor_number(first, "Pid:", &process))
      return (struct target){(int32_t)process, 0, (uint32_t)second};
    return (struct target){0};
  default:
    return (struct target){0};
  }
}

static int32_t group_of(int32_t process) {
  return (int32_t)raw_system_call(SYS_getpgid, (uintptr_t)process, 0, 0);
}

static bool is_signalled(const struct target *target, int32_t process) {
  int32_t to = target->process;
  if (target->thread != 0 || to > 0)
    return to == process;
  if (to == -1)
    return process != recording.process;
  return group_of(process) == (to == 0 ? group_of(0) : -to);
}

/* With the lock. One that a signal of this number joins, as the kernel keeps one of each that does
 * not queue; or a free one; or the oldest. */
static struct sent_signal *place_for(const struct sent_signal *added, uint32_t *dropped) {
  struct supply_table *table = supply_table();
  struct sent_signal *oldest = &table->signal[0], *place = NULL;
  for (uint32_t i = 0; i < table->signals_used; i++) {
    struct sent_signal *signal = &table->signal[i];
    if (signal->number == added->number && signal->process == added->process &&
        signal->thread == added->thread && added->number < SIGNAL_QUEUED_MIN)
      return signal;
    if (place == NULL && signal->number == 0)
      place = signal;
    if (signal->clock < oldest->clock)
      oldest = signal;
  }
  if (place == NULL && table->signals_used < SIGNALS_MAX)
    place = &table->signal[table->signals_used++];
  if (place == NULL)
    (*dropped)++;
  return place != NULL ? place : oldest;
}

static bool add(const struct target *target, int32_t process, uint64_t clock,
                const struct thread *from, uint32_t *dropped) {
  const struct sent_signal added = {.clock = clock,
                                    .process = process,
                                    .thread = target->thread,
                                    .from_process = recording.process,
                                    .from_thread = from->id,
                                    .number = target->number,
                                    .is_recorded = !region_is_outside};
  if (process != 0 && !is_signalled(target, process))
    return false;
  supply_table_lock();
  *place_for(&added, dropped) = added;
  supply_table_unlock();
  return true;
}

uint64_t sent_signals_send(struct thread *thread, const struct system_call *call,
                           uint32_t *dropped) {
  struct target target = target_of(call);
  *dropped = 0;
  if (target.number == 0 || target.number == SIGKILL || target.number == SIGSTOP)
    return 0;
  uint64_t clock = clock_advance();
  bool is_sent = false;
  if (call->x86_64 == SYS_tkill) {
    is_sent = add(&target, 0, clock, thread, dropped);
  } else if (recording.tree == NULL) {
    is_sent = add(&target, recording.process, clock, thread, dropped);
  } else {
    for (uint32_t i = 0; i < recording.tree->used; i++) {
      int32_t process = recording.tree->place[i].process;
      is_sent |= process != 0 && add(&target, process, clock, thread, dropped);
    }
  }
  return is_sent ? clock : 0;
}

void sent_signals_withdraw(uint64_t clock) {
  struct supply_table *table = supply_table();
  supply_table_lock();
  for (uint32_t i = 0; i < table->signals_used; i++) {
    if (table->signal[i].clock == clock)
      table->signal[i].number = 0;
  }
  supply_table_unlock();
}

static bool is_for(const struct sent_signal *signal, int32_t thread) {
  return signal->thread != 0 ? signal->thread == thread : signal->process == recording.process;
}

/* With the lock. */
static struct sent_signal *oldest_for(uint32_t number, int32_t thread) {
  struct supply_table *table = supply_table();
  struct sent_signal *oldest = NULL;
  for (uint32_t i = 0; i < table->signals_used; i++) {
    struct sent_signal *signal = &table->signal[i];
    if (signal->number == number && is_for(signal, thread) &&
        (oldest == NULL || signal->clock < oldest->clock))
      oldest = signal;
  }
  return oldest;
}

uint64_t sent_signals_take(const struct thread *thread, uint32_t number) {
  uint64_t clock = 0;
  supply_table_lock();
  struct sent_signal *signal = oldest_for(number, (int32_t)platform_kernel_thread_id(thread));
  if (signal != NULL) {
    bool is_own = signal->from_process == recording.process && signal->from_thread == thread->id;
    clock = is_own || !signal->is_recorded ? 0 : region_of_interest_clock(signal->clock);
    signal->number = 0;
  }
  supply_table_unlock();
  return clock;
}
