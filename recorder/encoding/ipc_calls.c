/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc_calls.h"

#include "baton.h"
#include "baton_tree.h"
#include "platform.h"
#include "raw_system_call.h"
#include "thread.h"
#include "virtual_time.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>

/* The kernel's (SEMOPM); more it refuses. */
#define OPERATIONS_MAX 500u

/* Makes the call without waiting; a negative errno. `busy` of its kind: it would have waited. */
typedef int64_t attempt(const uint64_t *argument);

static int64_t receive_message(const uint64_t *argument) {
  return raw_system_call_of_5(SYS_msgrcv, argument[0], argument[1], argument[2], argument[3],
                              argument[4] | IPC_NOWAIT);
}

static int64_t send_message(const uint64_t *argument) {
  return raw_system_call_of_5(SYS_msgsnd, argument[0], argument[1], argument[2],
                              argument[3] | IPC_NOWAIT, 0);
}

static bool read_operations(const uint64_t *argument, struct sembuf *operations) {
  size_t read;
  return argument[2] <= OPERATIONS_MAX &&
         platform_read((const void *)(uintptr_t)argument[1], argument[2] * sizeof(*operations),
                       operations, &read);
}

static int64_t operate_semaphores(const uint64_t *argument) {
  struct sembuf operations[OPERATIONS_MAX];
  if (!read_operations(argument, operations))
    return -EFAULT;
  for (uint64_t i = 0; i < argument[2]; i++)
    operations[i].sem_flg |= IPC_NOWAIT;
  return raw_system_call(SYS_semop, argument[0], (uintptr_t)operations, argument[2]);
}

static int64_t lock_file(const uint64_t *argument) {
  return raw_system_call(SYS_flock, argument[0], argument[1] | LOCK_NB, 0);
}

static int64_t lock_records(const uint64_t *argument) {
  uintptr_t command = argument[1] == F_SETLKW ? F_SETLK : F_OFD_SETLK;
  return raw_system_call(SYS_fcntl, argument[0], command, argument[2]);
}

/* A call of this kind. */
struct ipc_kind {
  attempt *try;
  int busy;
  bool restarts;            /* behind a handler that allows it */
  baton_question *is_ready; /* NULL: whether it can be made, in that whoever asks makes it */
};

/* As the kernel has it. A message is not sent before its sender's turn: others would take what
 * nobody has given yet. */
static bool can_send_message(struct thread *thread) {
  const uint64_t *argument = thread->system_call.argument;
  struct msqid_ds queue;
  return raw_system_call(SYS_msgctl, argument[0], IPC_STAT, (uintptr_t)&queue) != 0 ||
         (queue.__msg_cbytes + argument[2] <= queue.msg_qbytes &&
          queue.msg_qnum < queue.msg_qbytes);
}

/* Whether one of the operations is not to wait; what would be waited for is not known then. */
static bool may_wait(const uint64_t *argument) {
  struct sembuf operations[OPERATIONS_MAX];
  if (!read_operations(argument, operations))
    return false;
  for (uint64_t i = 0; i < argument[2]; i++) {
    if ((operations[i].sem_flg & IPC_NOWAIT) != 0)
      return false;
  }
  return true;
}

/* False where the call does not wait. */
static bool ipc_kind_of(const struct system_call *call, struct ipc_kind *kind) {
  const uint64_t *argument = call->argument;
  switch (call->x86_64) {
  case SYS_msgrcv:
    *kind = (struct ipc_kind){receive_message, ENOMSG, false, NULL};
    return (argument[4] & IPC_NOWAIT) == 0;
  case SYS_msgsnd:
    *kind = (struct ipc_kind){send_message, EAGAIN, false, can_send_message};
    return (argument[3] & IPC_NOWAIT) == 0;
  case SYS_semop:
  case SYS_semtimedop:
    *kind = (struct ipc_kind){operate_semaphores, EAGAIN, false, NULL};
    return may_wait(argument);
  case SYS_flock:
    *kind = (struct ipc_kind){lock_file, EWOULDBLOCK, true, NULL};
    return (argument[1] & LOCK_NB) == 0;
  case SYS_fcntl:
    *kind = (struct ipc_kind){lock_records, EAGAIN, true, NULL};
    return argument[1] == F_SETLKW || argument[1] == F_OFD_SETLKW;
  default:
    return false;
  }
}

static bool is_made(struct thread *thread) {
  struct system_call *call = &thread->system_call;
  struct ipc_kind kind;
  if (!ipc_kind_of(call, &kind))
    return true;
  call->tried = kind.try(call->argument);
  bool is_busy = call->tried == -kind.busy;
  if (!is_busy)
    baton_tree_called();
  return !is_busy;
}

static enum baton_call try_until(struct thread *thread, const struct ipc_kind *kind, uint64_t until,
                                 int64_t *result) {
  baton_question *is_ready = kind->is_ready != NULL ? kind->is_ready : is_made;
  bool is_over = is_made(thread);
  *result = -EINTR;
  while (!is_over && until > baton_clock(thread)) {
    enum baton_end end = baton_await(thread, is_ready, until);
    if (end == BATON_INTERRUPTED)
      return kind->restarts ? CALL_RESTARTS : CALL_IS_MADE;
    is_over = (end == BATON_WOKEN && is_ready == is_made) || is_made(thread);
  }
  *result = thread->system_call.tried;
  return CALL_IS_MADE;
}

/* --- queues of POSIX messages --- */

struct queue_attributes {
  long flags, messages_max, message_bytes, messages;
  long reserved[4];
};

static bool queue_attributes_of(const struct thread *thread, struct queue_attributes *attributes) {
  return raw_system_call(SYS_mq_getsetattr, thread->system_call.argument[0], 0,
                         (uintptr_t)attributes) == 0;
}

static bool can_send(struct thread *thread) {
  struct queue_attributes queue;
  return !queue_attributes_of(thread, &queue) || queue.messages < queue.messages_max;
}

static bool can_receive(struct thread *thread) {
  struct queue_attributes queue;
  return !queue_attributes_of(thread, &queue) || queue.messages > 0;
}

static bool queue_refuses(const struct thread *thread) {
  const struct system_call *call = &thread->system_call;
  struct queue_attributes queue;
  bool sends = call->x86_64 == SYS_mq_timedsend;
  long bytes = (long)call->argument[2];
  return !queue_attributes_of(thread, &queue) || (queue.flags & O_NONBLOCK) != 0 ||
         (sends ? bytes > queue.message_bytes : bytes < queue.message_bytes);
}

static enum baton_call use_queue(struct thread *thread, baton_question *is_ready, bool is_alone,
                                 int64_t *result) {
  uint64_t limit = thread->system_call.argument[4], ns, until = BATON_FOR_EVER;
  if (queue_refuses(thread))
    return CALL_GOES_ON;
  if (limit != 0 && !virtual_time_is_valid(limit))
    return CALL_GOES_ON;
  if (limit == 0 && is_alone)
    return CALL_BLOCKS;
  if (limit != 0 && virtual_time_read(limit, &ns))
    until = virtual_time_at(thread, ns, CLOCK_REALTIME);
  while (!is_ready(thread)) {
    enum baton_end end =
        until > baton_clock(thread) ? baton_await(thread, is_ready, until) : BATON_TIMED_OUT;
    if (end == BATON_INTERRUPTED)
      return CALL_RESTARTS;
    if (end == BATON_TIMED_OUT && !is_ready(thread)) {
      *result = -ETIMEDOUT;
      return CALL_IS_MADE;
    }
  }
  return CALL_GOES_ON;
}

bool ipc_call(struct thread *thread, const struct system_call *call, bool is_alone,
              enum baton_call *how, int64_t *result) {
  struct ipc_kind kind;
  uint64_t until = BATON_FOR_EVER;
  if (call->x86_64 == SYS_mq_timedsend || call->x86_64 == SYS_mq_timedreceive) {
    *how = use_queue(thread, call->x86_64 == SYS_mq_timedsend ? can_send : can_receive, is_alone,
                     result);
    return true;
  }
  if (!ipc_kind_of(call, &kind))
    return false;
  if (call->x86_64 == SYS_semtimedop && !virtual_time_limit(thread, call->argument[3], &until))
    *how = CALL_GOES_ON; /* The kernel says why not. */
  else if (is_alone && until == BATON_FOR_EVER)
    *how = CALL_BLOCKS;
  else
    *how = try_until(thread, &kind, until, result);
  return true;
}
