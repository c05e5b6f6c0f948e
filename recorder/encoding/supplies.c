/* SPDX-License-Identifier: Apache-2.0 */
#include "supplies.h"

#include "channel_key.h"
#include "channels.h"
#include "fields.h"
#include "platform.h"
#include "record_format.h"
#include "recording.h"
#include "sent_signals.h"
#include "socket_ends.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Newer than the headers may be. */
#define CALL_PIDFD_SEND_SIGNAL 424

void supplies_exit(void) { supply_table_exit(); }

/* Who takes what is forgotten comes behind nothing. */
static void send_dropped_edges(struct thread *thread, uint32_t count) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, count);
  fields_send(&fields, thread, EVENT_DROPPED_EDGES);
}

static void send_supply(struct thread *thread, uint64_t clock, uint64_t channel) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, channel);
  fields_send_clocked(&fields, thread, EVENT_SUPPLY, clock);
}

static void send_consume(struct thread *thread, uint64_t clock, uint64_t channel) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, channel);
  fields_number(&fields, clock);
  fields_send_clocked(&fields, thread, EVENT_CONSUME, clock_advance());
}

static void supply(struct thread *thread, uint64_t key, uint64_t bytes) {
  if (key == 0)
    return;
  struct transfer_edge edge = channels_give(key, bytes);
  if (edge.channel == 0)
    send_dropped_edges(thread, 1);
  else
    send_supply(thread, edge.clock, edge.channel);
}

static void consume(struct thread *thread, uint64_t key, uint64_t bytes, bool looks) {
  if (key == 0)
    return;
  struct transfer_edge edge = (looks ? channels_look : channels_take)(key, bytes);
  if (edge.channel == 0)
    send_dropped_edges(thread, 1);
  else if (edge.clock != 0)
    send_consume(thread, edge.clock, edge.channel);
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
      send_dropped_edges(thread, dropped);
    break;
  default:
    break;
  }
}

static void supply_signal(struct thread *thread, const struct system_call *call, int64_t result) {
  uint64_t channel = channels_number(channel_key_of_signals());
  if (call->clock == 0)
    return;
  if (result != 0)
    sent_signals_withdraw(call->clock);
  else if (channel == 0)
    send_dropped_edges(thread, 1);
  else
    send_supply(thread, call->clock, channel);
}

void supplies_signal(struct thread *thread, uint32_t number) {
  uint64_t clock = sent_signals_take(thread, number);
  uint64_t channel = clock == 0 ? 0 : channels_number(channel_key_of_signals());
  if (channel != 0)
    send_consume(thread, clock, channel);
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

void supplies_consumed(struct thread *thread, const struct system_call *call, int64_t result) {
  switch (call->x86_64) {
  case SYS_read:
  case SYS_readv:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_splice:
    if (moves(thread, result))
      consume_from_descriptor(thread, call, result);
    break;
  case SYS_msgrcv:
    if (result >= 0)
      consume(thread, channel_key_of_queue((int)call->argument[0]), 1, false);
    break;
  case SYS_mq_timedreceive:
    if (result >= 0)
      consume(thread, channel_key_of_posix_queue((int)call->argument[0]), 1, false);
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
  case SYS_sendto:
  case SYS_sendmsg:
  case SYS_vmsplice:
  case SYS_sendfile:
    break;
  case SYS_msgsnd:
    if (result == 0)
      supply(thread, channel_key_of_queue((int)call->argument[0]), 1);
    return;
  case SYS_mq_timedsend:
    if (result == 0)
      supply(thread, channel_key_of_posix_queue((int)call->argument[0]), 1);
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
    supply(thread, channel_key_of_descriptor((int)call->argument[to]), (uint64_t)result);
}
