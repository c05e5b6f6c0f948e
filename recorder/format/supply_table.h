/* SPDX-License-Identifier: Apache-2.0 */
/* What was supplied and has not been consumed: of a process alone, or of all processes of a tree,
 * which then share it. So it holds places and no pointers. One that is killed while it has the lock
 * leaves a table that can be used: links are set last. */
#ifndef SUPPLY_TABLE_H
#define SUPPLY_TABLE_H

#include <stdint.h>

#define CHANNELS_MAX (1u << 18) /* a power of two */
#define SUPPLIES_MAX (1u << 18)
#define SIGNALS_MAX 4096u
#define SOCKET_ENDS_MAX 1024u
#define BOUND_SOCKETS_MAX 1024u
#define SOCKET_ADDRESS_BYTES 128u /* of whatever family */

/* What one call gave to a channel. */
struct supply {
  uint64_t end;   /* of its bytes, among all that have gone through */
  uint64_t clock; /* of the call; 0: it is in no record */
  uint32_t next;  /* from 1; 0: none */
};

/* One direction: a pipe, an end of a socket pair, an eventfd. */
struct channel {
  uint64_t key;    /* encoding/channel_key.h; 0: the place is free */
  uint64_t number; /* in the order in which they were met */
  uint64_t peer;   /* key of the channel that its bytes go to, if that is another one */
  uint64_t supplied, consumed;
  uint32_t first, last, count; /* of its supplies; `last` means nothing where `first` is 0 */
  uint32_t has_signals;        /* that are read from it */
  /* The last close of a descriptor that could have written to it: the clock of the call, or, where
   * a process has ended, its number, from 1. */
  uint64_t end_clock;
  int32_t end_process;
};

/* One that was sent and not taken yet: of those that do not queue, the last. */
struct sent_signal {
  uint64_t clock;
  int32_t process; /* that it was sent to, or 0: whose thread that is */
  int32_t thread;  /* kernel id, or 0 for any */
  int32_t from_process;
  uint32_t from_thread; /* dense id */
  uint32_t number;      /* 0: none */
  uint32_t is_recorded; /* the call */
};

/* A socket that is connected, or accepted, and whose other end is not known. */
struct socket_end {
  uint64_t key; /* 0: none */
  uint64_t arrival;
  int32_t client; /* kernel id of the process that connects, where it is known to both ends */
  uint8_t own[SOCKET_ADDRESS_BYTES], peer[SOCKET_ADDRESS_BYTES];
};

/* A socket of datagrams that has an address. */
struct bound_socket {
  uint64_t key; /* 0: none */
  uint64_t arrival;
  uint8_t address[SOCKET_ADDRESS_BYTES];
};

struct supply_table {
  int32_t lock;          /* format/process_lock.h */
  uint32_t free, used;   /* of the supplies: those that were given back, and how far others are */
  uint32_t signals_used; /* how far */
  uint64_t channels_met;
  uint64_t socket_arrivals;
  uint64_t sockets_bound;
  struct sent_signal signal[SIGNALS_MAX];
  struct socket_end end[SOCKET_ENDS_MAX];
  struct bound_socket bound[BOUND_SOCKETS_MAX];
  struct supply supply[SUPPLIES_MAX];
  struct channel channel[CHANNELS_MAX];
};

/* A process is gone: signals to it are not taken any more. */
void supply_table_end(struct supply_table *table, int32_t process);

#endif
