// SPDX-License-Identifier: Apache-2.0
//
// A message for each round, which the C library copies and compares: by vector instructions.
#include <string.h>

#include "rotating_news.h"
#include "wait_while.h"

#ifndef MESSAGE_BYTES
#define MESSAGE_BYTES 32
#endif

struct message {
  _Alignas(LINE_BYTES) unsigned char bytes[MESSAGE_BYTES];
};

static struct message messages[ROUNDS];
// Nobody knows what they do, so that memory is read again.
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static int (*volatile compare)(const void *, const void *, size_t) = memcmp;

static struct message message_of(unsigned round) {
  struct message message;
  memset(message.bytes, (int)round + 1, sizeof message.bytes);
  return message;
}

static void tell(unsigned round) {
  struct message message = message_of(round);
  copy(messages[round].bytes, message.bytes, MESSAGE_BYTES);
}

static void wait_for(unsigned round) {
  struct message message = message_of(round);
  WAIT_WHILE(compare(messages[round].bytes, message.bytes, MESSAGE_BYTES) != 0);
}
