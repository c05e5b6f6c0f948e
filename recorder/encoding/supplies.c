/* SPDX-License-Identifier: Apache-2.0 */
#include "supplies.h"

#include "address_map.h"
#include "arena.h"
#include "decimal.h"
#include "fields.h"
#include "platform.h"
#include "raw_system_call.h"
#include "record_format.h"
#include "recording.h"
#include "region_of_interest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Of one channel; where more are not consumed, the newest is made to stand for them. */
#define SUPPLIES_MAX 1024u

struct supply {
  uint64_t end;   /* of its bytes, among all that have gone through */
  uint64_t clock; /* of the call */
};

/* One direction: a pipe, an end of a socket pair, an eventfd. */
struct channel {
  uint64_t number; /* in the order in which they were met */
  uint64_t peer;   /* key of the channel that its bytes go to, if that is another one */
  uint64_t supplied, consumed;
  uint32_t first, count;
  struct supply supply[SUPPLIES_MAX];
};

static struct {
  struct arena arena;
  struct address_map channels;
  uint64_t met;
} supplies;

#define ADDRESS_BYTES 128u /* of whatever family */

/* A socket of the program that is connected, or about to be accepted, to another. */
struct socket_end {
  uint64_t key; /* 0: none */
  uint8_t own[ADDRESS_BYTES], peer[ADDRESS_BYTES];
};

#define SOCKETS_MAX 1024u

static struct socket_end unmatched[SOCKETS_MAX];
static uint32_t socket_count;

/* Signals that were sent and not taken yet: of those that do not queue, the last. */
#define SIGNALS_MAX 64u
#define SIGNAL_QUEUED_MIN 32u

static struct sent_signal {
  uint64_t to; /* a kernel thread id, or 0 for any */
  uint64_t clock;
  uint32_t number; /* 0: none */
  uint32_t from;
} sent[SIGNALS_MAX];
static uint32_t sent_count;

void supplies_exit(void) {
  arena_free(&supplies.arena);
  address_map_free(&supplies.channels);
  memset(&supplies, 0, sizeof(supplies));
  memset(sent, 0, sizeof(sent));
  memset(unmatched, 0, sizeof(unmatched));
}

/* All eventfds have the same inode; the kernel numbers them elsewhere. */
static uint64_t eventfd_number(int descriptor) {
  static const char name[] = "eventfd-id:";
  static const char folder[] = "/proc/self/fdinfo/";
  char path[sizeof(folder) + DECIMAL_BYTES_MAX], text[512];
  memcpy(path, folder, sizeof(folder));
  decimal_write(path + sizeof(folder) - 1, (uint32_t)descriptor);
  long file = raw_system_call(SYS_open, (uintptr_t)path, O_RDONLY | O_CLOEXEC, 0);
  if (file < 0)
    return 0;
  long bytes = raw_system_call(SYS_read, (uintptr_t)file, (uintptr_t)text, sizeof(text) - 1);
  raw_system_call(SYS_close, (uintptr_t)file, 0, 0);
  text[bytes < 0 ? 0 : bytes] = '\0';
  uint64_t number = 0;
  const char *at = text;
  while (*at != '\0' && strncmp(at, name, sizeof(name) - 1) != 0)
    at++;
  if (*at == '\0')
    return 0;
  for (at += sizeof(name) - 1; *at == ' ' || *at == '\t'; at++)
    ;
  for (; *at >= '0' && *at <= '9'; at++)
    number = 10 * number + (uint64_t)(*at - '0');
  return number + 1;
}

/* In the key of a socket with messages: each counts as one byte, however much of it is read. */
#define MESSAGES (1ull << 63)

static bool has_messages(int descriptor) {
  int type;
  uint32_t bytes = sizeof(type);
  return raw_system_call_of_5(SYS_getsockopt, (uintptr_t)descriptor, SOL_SOCKET, SO_TYPE,
                              (uintptr_t)&type, (uintptr_t)&bytes) == 0 &&
         type != SOCK_STREAM;
}

static uint64_t inode_key(const struct stat *status) {
  return (uint64_t)status->st_dev << 48 ^ (uint64_t)status->st_ino << 1;
}

/* What tells the descriptor's channel from others; 0 where it has none. */
static uint64_t key_of(int descriptor) {
  struct stat status;
  if (raw_system_call(SYS_fstat, (uintptr_t)descriptor, (uintptr_t)&status, 0) != 0)
    return 0;
  switch (status.st_mode & S_IFMT) {
  case S_IFSOCK:
    return (has_messages(descriptor) ? MESSAGES : 0) | inode_key(&status);
  case S_IFIFO:
    return inode_key(&status);
  case 0: {
    uint64_t number = eventfd_number(descriptor);
    return number == 0 ? 0 : number << 1 | 1;
  }
  default:
    return 0;
  }
}

static struct channel *channel_of(uint64_t key) {
  struct channel *channel = address_map_find(&supplies.channels, key);
  if (channel == NULL) {
    channel = arena_allocate(&supplies.arena, sizeof(*channel));
    channel->number = ++supplies.met;
    address_map_set(&supplies.channels, key, channel);
  }
  return channel;
}

static struct supply *supply_at(struct channel *channel, uint32_t at) {
  return &channel->supply[(channel->first + at) % SUPPLIES_MAX];
}

static void send_event(struct thread *thread, uint8_t type, const struct channel *channel,
                       uint64_t clock) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, channel->number);
  if (type == EVENT_CONSUME)
    fields_number(&fields, clock);
  fields_send_clocked(&fields, thread, type, type == EVENT_CONSUME ? clock_advance() : clock);
}

static void supply(struct thread *thread, uint64_t key, uint64_t bytes) {
  struct channel *channel = channel_of(key);
  if (channel->peer != 0)
    channel = channel_of(channel->peer);
  uint64_t clock = clock_advance();
  if (channel->count == SUPPLIES_MAX)
    channel->count--;
  channel->supplied += bytes;
  *supply_at(channel, channel->count++) = (struct supply){channel->supplied, clock};
  send_event(thread, EVENT_SUPPLY, channel, clock);
}

/* The last byte decides: what came before it had been supplied then. */
static void look(struct thread *thread, uint64_t key, uint64_t bytes) {
  struct channel *channel = channel_of(key);
  uint64_t clock = 0;
  for (uint32_t i = 0; i < channel->count; i++) {
    const struct supply *next = supply_at(channel, i);
    clock = next->clock;
    if (next->end >= channel->consumed + bytes)
      break;
  }
  clock = region_of_interest_clock(clock);
  if (clock != 0)
    send_event(thread, EVENT_CONSUME, channel, clock);
}

/* Likewise, and they are gone. */
static void consume(struct thread *thread, uint64_t key, uint64_t bytes) {
  struct channel *channel = channel_of(key);
  uint64_t clock = 0;
  channel->consumed += bytes;
  while (channel->count > 0) {
    const struct supply *next = supply_at(channel, 0);
    clock = next->clock;
    if (next->end > channel->consumed)
      break;
    bool is_last = next->end == channel->consumed;
    channel->first = (channel->first + 1) % SUPPLIES_MAX;
    channel->count--;
    if (is_last)
      break;
  }
  clock = region_of_interest_clock(clock);
  if (clock != 0)
    send_event(thread, EVENT_CONSUME, channel, clock);
}

/* Reading an eventfd takes all of its count, or one of it; each adding is a supply of one byte. */
static uint64_t amount(uint64_t key, int64_t result, const struct channel *channel) {
  bool is_eventfd = (key & 1) != 0;
  if ((key & MESSAGES) != 0)
    return 1;
  if (!is_eventfd || channel == NULL)
    return is_eventfd ? 1 : (uint64_t)result;
  return channel->supplied - channel->consumed;
}

static void connect_both(uint64_t one, uint64_t other) {
  if (one == 0 || other == 0)
    return;
  channel_of(one)->peer = other;
  channel_of(other)->peer = one;
}

static void pair(const struct system_call *call) {
  int end[2];
  size_t read;
  if (platform_read((const void *)(uintptr_t)call->argument[3], sizeof(end), end, &read))
    connect_both(key_of(end[0]), key_of(end[1]));
}

static bool is_same_place(const uint8_t *one, const uint8_t *other) {
  return memcmp(one, other, ADDRESS_BYTES) == 0;
}

/* Each end of a connection is seen by itself: they belong together where each is the other's peer.
 */
static void match(int descriptor) {
  struct socket_end end = {.key = key_of(descriptor)};
  uint32_t own_bytes = sizeof(end.own), peer_bytes = sizeof(end.peer);
  if (end.key == 0 ||
      raw_system_call(SYS_getsockname, (uintptr_t)descriptor, (uintptr_t)end.own,
                      (uintptr_t)&own_bytes) != 0 ||
      raw_system_call(SYS_getpeername, (uintptr_t)descriptor, (uintptr_t)end.peer,
                      (uintptr_t)&peer_bytes) != 0)
    return;
  for (uint32_t i = 0; i < SOCKETS_MAX; i++) {
    struct socket_end *other = &unmatched[i];
    if (other->key != 0 && is_same_place(other->own, end.peer) &&
        is_same_place(other->peer, end.own)) {
      connect_both(end.key, other->key);
      other->key = 0;
      return;
    }
  }
  unmatched[socket_count++ % SOCKETS_MAX] = end;
}

static struct channel *channel_of_signals(void) { return channel_of(UINT64_MAX); }

/* One that a signal of this number joins: the kernel keeps one of each that does not queue. */
static struct sent_signal *pending_signal(uint64_t to, uint32_t number) {
  for (uint32_t i = 0; i < SIGNALS_MAX && number < SIGNAL_QUEUED_MIN; i++)
    if (sent[i].number == number && sent[i].to == to)
      return &sent[i];
  return NULL;
}

/* Who takes a signal that is forgotten comes behind nothing. */
static void send_dropped_edge(struct thread *thread) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, 1);
  fields_send(&fields, thread, EVENT_DROPPED_EDGES);
}

static void supply_signal(struct thread *thread, uint64_t to, uint32_t number) {
  uint64_t clock = clock_advance();
  struct sent_signal *signal = pending_signal(to, number);
  if (signal == NULL)
    signal = &sent[sent_count++ % SIGNALS_MAX];
  if (signal->number != 0 && signal->number != number)
    send_dropped_edge(thread);
  *signal = (struct sent_signal){to, clock, number, thread->id};
  send_event(thread, EVENT_SUPPLY, channel_of_signals(), clock);
}

void supplies_signal(struct thread *thread, uint32_t number) {
  uint64_t own = platform_kernel_thread_id(thread);
  for (uint32_t i = 0; i < SIGNALS_MAX; i++) {
    struct sent_signal *signal = &sent[(sent_count + i) % SIGNALS_MAX];
    if (signal->number != number || (signal->to != 0 && signal->to != own))
      continue;
    uint64_t clock = region_of_interest_clock(signal->clock);
    if (signal->from != thread->id && clock != 0)
      send_event(thread, EVENT_CONSUME, channel_of_signals(), clock);
    signal->number = 0;
    return;
  }
}

static uint64_t key_of_transfer(const struct thread *thread, const struct system_call *call,
                                int64_t result) {
  return result > 0 && thread->call_depth == 0 ? key_of((int)call->argument[0]) : 0;
}

/* A message is one byte: of a queue, of whatever kind. */
static uint64_t key_of_queue(const struct system_call *call) {
  bool is_posix = call->x86_64 == SYS_mq_timedsend || call->x86_64 == SYS_mq_timedreceive;
  struct stat status;
  if (!is_posix)
    return 1ull << 62 | call->argument[0];
  return raw_system_call(SYS_fstat, (uintptr_t)call->argument[0], (uintptr_t)&status, 0) == 0
             ? 1ull << 61 | (uint64_t)status.st_ino << 1
             : 0;
}

static bool is_peek(const struct system_call *call) {
  uint64_t flags = call->x86_64 == SYS_recvfrom  ? call->argument[3]
                   : call->x86_64 == SYS_recvmsg ? call->argument[2]
                                                 : 0;
  return (flags & MSG_PEEK) != 0;
}

void supplies_consumed(struct thread *thread, const struct system_call *call, int64_t result) {
  uint64_t key;
  switch (call->x86_64) {
  case SYS_read:
  case SYS_readv:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_splice:
    key = key_of_transfer(thread, call, result);
    if (key != 0)
      (is_peek(call) ? look : consume)(thread, key, amount(key, result, channel_of(key)));
    break;
  case SYS_msgrcv:
  case SYS_mq_timedreceive:
    key = result >= 0 ? key_of_queue(call) : 0;
    if (key != 0)
      consume(thread, key, 1);
    break;
  case SYS_rt_sigtimedwait:
    if (result > 0)
      supplies_signal(thread, (uint32_t)result);
    break;
  case SYS_socketpair:
    if (result == 0)
      pair(call);
    break;
  case SYS_connect:
    if (result == 0 || result == -EINPROGRESS)
      match((int)call->argument[0]);
    break;
  case SYS_accept:
  case SYS_accept4:
    if (result >= 0)
      match((int)result);
    break;
  default:
    break;
  }
}

/* What the kernel moves from one descriptor to another. */
static void supply_moved(struct thread *thread, const struct system_call *call, int64_t result) {
  unsigned to = call->x86_64 == SYS_splice ? 2 : call->x86_64 == SYS_tee ? 1 : 0;
  uint64_t key = result > 0 && thread->call_depth == 0 ? key_of((int)call->argument[to]) : 0;
  if (key != 0)
    supply(thread, key, amount(key, result, NULL));
}

void supplies_made(struct thread *thread, const struct system_call *call, int64_t result) {
  uint64_t key;
  switch (call->x86_64) {
  case SYS_write:
  case SYS_writev:
  case SYS_sendto:
  case SYS_sendmsg:
  case SYS_vmsplice:
    key = key_of_transfer(thread, call, result);
    if (key != 0)
      supply(thread, key, amount(key, result, NULL));
    break;
  case SYS_splice:
  case SYS_tee:
  case SYS_sendfile:
    supply_moved(thread, call, result);
    break;
  case SYS_msgsnd:
  case SYS_mq_timedsend:
    key = result == 0 ? key_of_queue(call) : 0;
    if (key != 0)
      supply(thread, key, 1);
    break;
  case SYS_kill:
  case SYS_rt_sigqueueinfo:
    if (result == 0 && call->argument[0] == (uint64_t)recording.process)
      supply_signal(thread, 0, (uint32_t)call->argument[1]);
    break;
  case SYS_tkill:
    if (result == 0)
      supply_signal(thread, call->argument[0], (uint32_t)call->argument[1]);
    break;
  case SYS_tgkill:
  case SYS_rt_tgsigqueueinfo:
    if (result == 0 && call->argument[0] == (uint64_t)recording.process)
      supply_signal(thread, call->argument[1], (uint32_t)call->argument[2]);
    break;
  default:
    break;
  }
}
