/* SPDX-License-Identifier: Apache-2.0 */
/* Channels of the supply table (format/supply_table.h), and what is in them. */
#ifndef CHANNELS_H
#define CHANNELS_H

#include "supply_table.h"

#include <stdbool.h>
#include <stdint.h>

/* The table of the process, or of its tree. */
struct supply_table *supply_table(void);
void supply_table_lock(void);
void supply_table_unlock(void);
/* At the end, and in a forked child: what its parent alone supplied is not the child's. */
void supply_table_exit(void);

/* The channel's number; 0 where the table is full. */
uint64_t channels_number(uint64_t key);

/* Signals are read from it (signalfd). */
void channels_set_signals(uint64_t key);
bool channels_have_signals(uint64_t key);

/* Whether it is one end of a connection whose other end is known. */
bool channels_have_peer(uint64_t key);

/* What became of one side of a transfer. */
struct transfer_edge {
  uint64_t channel; /* its number; 0: the table is full, and the edge is not known */
  uint64_t clock;   /* of the supply; 0: none, or in no record */
};

/* A call gave so many bytes; messages and counts count as one. */
struct transfer_edge channels_give(uint64_t key, uint64_t bytes);
/* A call took so many, or looked at them: the last byte decides, since what came before it had been
 * supplied then. */
struct transfer_edge channels_take(uint64_t key, uint64_t bytes);
struct transfer_edge channels_look(uint64_t key, uint64_t bytes);

/* How a stream ended, as far as that is known: a close, or a process's end. */
struct channel_end {
  struct transfer_edge edge;
  int32_t process; /* its number, from 1; 0: none */
};

/* A descriptor is closed that could write to where the key's writes go: by a call, or, by the end
 * of a process, whose number from 1 that is. */
struct transfer_edge channels_end(uint64_t key, int32_t process);
struct channel_end channels_look_at_end(uint64_t key);

/* The two ends of a connection; 0: unknown. */
void channels_connect(uint64_t one, uint64_t other);

#endif
