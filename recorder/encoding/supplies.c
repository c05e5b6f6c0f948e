/* SPDX-License-Identifier: Apache-2.0 */
#include "supplies.h"

#include "channel_key.h"
#include "channels.h"
#include "datagrams.h"
#include "platform.h"
#include "sent_signals.h"
#include "socket_ends.h"
#include "stream_ends.h"
#include "supply_events.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Newer than the headers may be. */
#define CALL_PIDFD_SEND_SIGNAL 424

void supplies_exit(void) { supply_table_exit(); }

static void supply(struct thread *thread, uint64_t key, uint64_t bytes) {
  if (key == 0)
    return;
  supply_events_made(thread, channels_give(key, bytes));
}

static void consume(struct thread *thread, uint64_t key, uint64_t bytes, bool looks) {
  if (key == 0)
    return;
  supply_events_consumed(thread, (looks ? channels_look : channels_take)(key, bytes));
}

void supplies_before(struct thread *thread, struct system_call *call) {
  uint32_t dropped;
  switch (call->x86_64) {
  case SYS_kill:
  case SYS_tkill:
  case SYS_tgkill:
  case SYS_rt_sigqueueinfo:
  case SYS_rt_tgsigqueueinfo:
  case CALL_PIDFD_SEND_SIGNAL:
    call->clock = sent_signals_send(thread, call, &dropped);
    if (dropped > 0)
      supply_events_dropped(thread, dropped);
    break;
  case SYS_execve:
  case SYS_execveat:
    break; /* recorded earlier */
  default:
    stream_ends_before_call(thread, call);
    break;
  }
}

static void supply_signal(struct thread *thread, const struct system_call *call, int64_t result) {
  uint64_t channel = channels_number(channel_key_of_signals());
  if (call->clock == 0)
    return;
  if (result != 0)
    sent_signals_withdraw(call->clock);
  else
    supply_events_made(thread, (struct transfer_edge){channel, call->clock});
}

void supplies_signal(struct thread *thread, uint32_t number) {
  uint64_t clock = sent_signals_take(thread, number);
  uint64_t channel = clock == 0 ? 0 : channels_number(channel_key_of_signals());
  if (channel != 0)
    supply_events_consumed(thread, (struct transfer_edge){channel, clock});
}

/* From a descriptor of signalfd: the engine's is a pipe. */
static void consume_signals(struct thread *thread, uint64_t buffer, uint64_t bytes) {
  struct signalfd_siginfo one;
  size_t read;
  for (uint64_t at = 0; at + sizeof(one) <= bytes; at += sizeof(one)) {
    if (platform_read((const void *)(uintptr_t)(buffer + at), sizeof(one), &one, &read))
      supplies_signal(thread, one.ssi_signo);
  }
}

static bool moves(const struct thread *thread, int64_t result) {
  return result > 0 && thread->call_depth == 0;
}

/* Semaphores (System V) that were taken from, or given to. */
static void operate(struct thread *thread, const struct system_call *call, bool gives) {
  for (uint64_t i = 0; i < call->argument[2]; i++) {
    struct sembuf operation;
    size_t read;
    if (!platform_read((const struct sembuf *)(uintptr_t)call->argument[1] + i, sizeof(operation),
                       &operation, &read))
      return;
    uint64_t key = channel_key_of_semaphore((int)call->argument[0], operation.sem_num);
    if (gives && operation.sem_op > 0)
      supply(thread, key, (uint64_t)operation.sem_op);
    else if (!gives && operation.sem_op < 0)
      consume(thread, key, (uint64_t)-operation.sem_op, false);
  }
}

enum lock_call { LOCK_NONE, LOCK_GIVEN, LOCK_SHARED, LOCK_TAKEN };

static enum lock_call lock_call(const struct system_call *call) {
  struct flock lock;
  size_t read;
  if (call->x86_64 == SYS_flock)
    return (call->argument[1] & LOCK_UN) != 0   ? LOCK_GIVEN
           : (call->argument[1] & LOCK_SH) != 0 ? LOCK_SHARED
                                                : LOCK_TAKEN;
  switch (call->argument[1]) {
  case F_SETLK:
  case F_SETLKW:
  case F_OFD_SETLK:
  case F_OFD_SETLKW:
    if (!platform_read((const void *)(uintptr_t)call->argument[2], sizeof(lock), &lock, &read))
      return LOCK_NONE;
    return lock.l_type == F_UNLCK ? LOCK_GIVEN : lock.l_type == F_RDLCK ? LOCK_SHARED : LOCK_TAKEN;
  default:
    return LOCK_NONE;
  }
}

/* Of a file: who takes it comes behind the last that has given it. */
static void take_lock(struct thread *thread, const struct system_call *call) {
  enum lock_call what = lock_call(call);
  if (what == LOCK_SHARED || what == LOCK_TAKEN)
    consume(thread, channel_key_of_lock((int)call->argument[0]), 1, what == LOCK_SHARED);
}

static bool is_peek(const struct system_call *call) {
  uint64_t flags = call->x86_64 == SYS_recvfrom  ? call->argument[3]
                   : call->x86_64 == SYS_recvmsg ? call->argument[2]
                                                 : 0;
  return (flags & MSG_PEEK) != 0;
}

static void consume_from_descriptor(struct thread *thread, const struct system_call *call,
                                    int64_t result) {
  uint64_t key = channel_key_of_descriptor((int)call->argument[0]);
  if (call->x86_64 == SYS_read && key != 0 && channels_have_signals(key))
    consume_signals(thread, call->argument[1], (uint64_t)result);
  else
    consume(thread, key, (uint64_t)result, is_peek(call));
}

typedef void visit_message(struct thread *thread, const struct system_call *call,
                           const struct mmsghdr *message);

static void each_message(struct thread *thread, const struct system_call *call, int64_t count,
                         visit_message *visit) {
  struct mmsghdr message;
  size_t read;
  for (int64_t i = 0; i < count && thread->call_depth == 0; i++) {
    if (platform_read((const struct mmsghdr *)(uintptr_t)call->argument[1] + i, sizeof(message),
                      &message, &read))
      visit(thread, call, &message);
  }
}

static void consume_message(struct thread *thread, const struct system_call *call,
                            const struct mmsghdr *message) {
  consume(thread, channel_key_of_descriptor((int)call->argument[0]), message->msg_len,
          (call->argument[3] & MSG_PEEK) != 0);
}

static void send_to(struct thread *thread, int descriptor, uint64_t address, uint64_t address_bytes,
                    uint64_t bytes) {
  uint64_t key = channel_key_of_descriptor(descriptor);
  supply(thread, datagram_channel(descriptor, key, address, address_bytes), bytes);
}

static void supply_message(struct thread *thread, const struct system_call *call,
                           const struct mmsghdr *message) {
  send_to(thread, (int)call->argument[0], (uint64_t)(uintptr_t)message->msg_hdr.msg_name,
          message->msg_hdr.msg_namelen, message->msg_len);
}

static void supply_one_message(struct thread *thread, const struct system_call *call,
                               int64_t result) {
  struct mmsghdr message = {.msg_len = (unsigned)result};
  size_t read;
  if (platform_read((const void *)(uintptr_t)call->argument[1], sizeof(message.msg_hdr),
                    &message.msg_hdr, &read))
    supply_message(thread, call, &message);
}

void supplies_consumed(struct thread *thread, const struct system_call *call, int64_t result) {
  switch (call->x86_64) {
  case SYS_read:
  case SYS_readv:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_splice:
    if (moves(thread, result))
      consume_from_descriptor(thread, call, result);
    else if (result == 0 && thread->call_depth == 0)
      stream_end_after_read(thread, call);
    break;
  case SYS_recvmmsg:
    each_message(thread, call, result, consume_message);
    break;
  case SYS_bind:
    if (result == 0)
      datagrams_bound((int)call->argument[0]);
    break;
  case SYS_msgrcv:
    if (result >= 0)
      consume(thread, channel_key_of_queue((int)call->argument[0]), 1, false);
    break;
  case SYS_mq_timedreceive:
    if (result >= 0)
      consume(thread, channel_key_of_posix_queue((int)call->argument[0]), 1, false);
    break;
  case SYS_semop:
  case SYS_semtimedop:
    if (result == 0)
      operate(thread, call, false);
    break;
  case SYS_flock:
  case SYS_fcntl:
    if (result == 0)
      take_lock(thread, call);
    break;
  case SYS_rt_sigtimedwait:
    if (result > 0)
      supplies_signal(thread, (uint32_t)result);
    break;
  case SYS_signalfd:
  case SYS_signalfd4:
    if (result >= 0)
      channels_set_signals(channel_key_of_descriptor((int)result));
    break;
  case SYS_socketpair:
    if (result == 0)
      socket_ends_are_pair(call);
    break;
  case SYS_connect:
    if (result == 0 || result == -EINPROGRESS)
      socket_end_connected((int)call->argument[0]);
    break;
  case SYS_accept:
  case SYS_accept4:
    if (result >= 0)
      socket_end_accepted((int)result);
    break;
  default:
    break;
  }
}

void supplies_made(struct thread *thread, const struct system_call *call, int64_t result) {
  unsigned to = 0; /* the argument that is the descriptor */
  switch (call->x86_64) {
  case SYS_splice:
    to = 2;
    break;
  case SYS_tee:
    to = 1;
    break;
  case SYS_write:
  case SYS_writev:
  case SYS_vmsplice:
  case SYS_sendfile:
    break;
  case SYS_sendto:
    if (moves(thread, result))
      send_to(thread, (int)call->argument[0], call->argument[4], call->argument[5],
              (uint64_t)result);
    return;
  case SYS_sendmsg:
    if (moves(thread, result))
      supply_one_message(thread, call, result);
    return;
  case SYS_sendmmsg:
    each_message(thread, call, result, supply_message);
    return;
  case SYS_msgsnd:
    if (result == 0)
      supply(thread, channel_key_of_queue((int)call->argument[0]), 1);
    return;
  case SYS_mq_timedsend:
    if (result == 0)
      supply(thread, channel_key_of_posix_queue((int)call->argument[0]), 1);
    return;
  case SYS_semop:
  case SYS_semtimedop:
    if (result == 0)
      operate(thread, call, true);
    return;
  case SYS_semctl:
    if (result == 0 && call->argument[2] == SETVAL && (int)call->argument[3] > 0)
      supply(thread, channel_key_of_semaphore((int)call->argument[0], call->argument[1]),
             call->argument[3]);
    return;
  case SYS_flock:
  case SYS_fcntl:
    if (result == 0 && lock_call(call) == LOCK_GIVEN)
      supply(thread, channel_key_of_lock((int)call->argument[0]), 1);
    return;
  case SYS_kill:
  case SYS_tkill:
  case SYS_tgkill:
  case SYS_rt_sigqueueinfo:
  case SYS_rt_tgsigqueueinfo:
  case CALL_PIDFD_SEND_SIGNAL:
    supply_signal(thread, call, result);
    return;
  default:
    return;
  }
  if (moves(thread, result))
    send_to(thread, (int)call->argument[to], 0, 0, (uint64_t)result);
}
