/* SPDX-License-Identifier: Apache-2.0 */
#include "futex.h"

#include "fields.h"
#include "record_format.h"
#include "recording.h"
#include "region_of_interest.h"
#include "wake_pairing.h"

#include <errno.h>
#include <linux/futex.h>

enum futex_kind { FUTEX_NEITHER, FUTEX_WAITS, FUTEX_WAKES };

enum wait_outcome { OUTCOME_WOKEN, OUTCOME_VALUE_CHANGED, OUTCOME_TIMED_OUT, OUTCOME_INTERRUPTED };

static enum futex_kind kind_of(const struct system_call *call) {
  switch ((int)call->argument[1] & FUTEX_CMD_MASK) {
  case FUTEX_WAIT:
  case FUTEX_WAIT_BITSET:
  case FUTEX_WAIT_REQUEUE_PI:
    return FUTEX_WAITS;
  case FUTEX_WAKE:
  case FUTEX_WAKE_BITSET:
  case FUTEX_WAKE_OP:
  case FUTEX_REQUEUE:
  case FUTEX_CMP_REQUEUE:
    return FUTEX_WAKES;
  default:
    return FUTEX_NEITHER;
  }
}

/* Inside a synchronisation function its event says it all. */
static bool is_the_programs(const struct thread *thread) { return thread->call_depth == 0; }

void futex_before(struct thread *thread, struct system_call *call) {
  if (!is_the_programs(thread)) {
    int command = (int)call->argument[1] & FUTEX_CMD_MASK;
    call_path_futex(thread, call->argument[0],
                    kind_of(call) != FUTEX_WAKES && command != FUTEX_UNLOCK_PI);
    return;
  }
  if (kind_of(call) == FUTEX_WAITS)
    call->clock = wait_begins(call->argument[0]);
  else if (kind_of(call) == FUTEX_WAKES)
    call->clock = wake_happens(call->argument[0], (uint32_t)call->argument[2]);
}

static void after_wait(struct thread *thread, struct system_call *call, int64_t result) {
  uint64_t wake = wait_ends(call->argument[0], call->clock, result == 0);
  uint8_t outcome = result == 0            ? OUTCOME_WOKEN
                    : result == -EAGAIN    ? OUTCOME_VALUE_CHANGED
                    : result == -ETIMEDOUT ? OUTCOME_TIMED_OUT
                                           : OUTCOME_INTERRUPTED;
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, call->argument[0]);
  fields_number(&fields, region_of_interest_clock(wake));
  fields_byte(&fields, outcome);
  fields_send_clocked(&fields, thread, EVENT_FUTEX_WAIT, clock_advance());
}

static void after_wake(struct thread *thread, struct system_call *call, int64_t result) {
  uint32_t woken = result > 0 ? (uint32_t)result : 0;
  wake_counted(call->argument[0], call->clock, woken);
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, call->argument[0]);
  fields_number(&fields, woken);
  fields_send_clocked(&fields, thread, EVENT_FUTEX_WAKE, call->clock);
}

void futex_after(struct thread *thread, struct system_call *call, int64_t result) {
  if (!is_the_programs(thread))
    return;
  if (kind_of(call) == FUTEX_WAITS)
    after_wait(thread, call, result);
  else if (kind_of(call) == FUTEX_WAKES)
    after_wake(thread, call, result);
}
