/* SPDX-License-Identifier: Apache-2.0 */
/* What tells the channels behind descriptors from each other, in all processes: a number that is
 * never 0, and has the channel's kind in it. */
#ifndef CHANNEL_KEY_H
#define CHANNEL_KEY_H

#include <stdbool.h>
#include <stdint.h>

/* The lowest of a key, which are its kind. */
#define CHANNEL_KIND_BITS 4

enum channel_kind {
  CHANNEL_OF_BYTES = 1,
  CHANNEL_OF_MESSAGES, /* of a socket: each is one byte, however much of it is read */
  CHANNEL_OF_COUNTS,   /* an eventfd: each adding is a byte; who reads takes all */
  CHANNEL_OF_QUEUE,    /* of System V; of messages, too */
  CHANNEL_OF_POSIX_QUEUE,
  CHANNEL_OF_SEMAPHORE, /* of System V: what is added to it is bytes */
  CHANNEL_OF_LOCKS,     /* of a file: each that is given back is a byte; who takes one takes all */
  CHANNEL_OF_SIGNALS,   /* all that are sent */
};

enum channel_kind channel_kind(uint64_t key);

/* Whether a socket keeps messages apart. */
bool socket_has_messages(int descriptor);

/* Of a pipe, a socket or an eventfd; 0 of anything else. */
uint64_t channel_key_of_descriptor(int descriptor);
uint64_t channel_key_of_queue(int identifier);
uint64_t channel_key_of_posix_queue(int descriptor);
/* Of a semaphore in a set. */
uint64_t channel_key_of_semaphore(int identifier, uint64_t number);
/* Of the locks of a file. */
uint64_t channel_key_of_lock(int descriptor);
uint64_t channel_key_of_signals(void);

/* The number that /proc/self/fdinfo has of a descriptor behind a name, which has its colon; false
 * where there is none. */
bool descriptor_number(int descriptor, const char *name, uint64_t *number);

#endif
