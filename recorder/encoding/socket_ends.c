/* SPDX-License-Identifier: Apache-2.0 */
#include "socket_ends.h"

#include "channel_key.h"
#include "channels.h"
#include "platform.h"
#include "raw_system_call.h"
#include "recording.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static bool ask_address(long call, int descriptor, uint8_t address[SOCKET_ADDRESS_BYTES]) {
  uint32_t bytes = SOCKET_ADDRESS_BYTES;
  return raw_system_call(call, (uintptr_t)descriptor, (uintptr_t)address, (uintptr_t)&bytes) == 0;
}

static bool find(int descriptor, struct socket_end *end) {
  *end = (struct socket_end){.key = channel_key_of_descriptor(descriptor)};
  return end->key != 0 && ask_address(SYS_getsockname, descriptor, end->own) &&
         ask_address(SYS_getpeername, descriptor, end->peer);
}

/* Those of Unix have no addresses of their own, but say who connected. */
static bool is_of_unix(const struct socket_end *end) {
  sa_family_t family;
  memcpy(&family, end->own, sizeof(family));
  return family == AF_UNIX;
}

static bool is_other_end(const struct socket_end *one, const struct socket_end *other) {
  return other->key != 0 && one->client == other->client &&
         memcmp(one->own, other->peer, SOCKET_ADDRESS_BYTES) == 0 &&
         memcmp(one->peer, other->own, SOCKET_ADDRESS_BYTES) == 0;
}

/* With the lock. They are accepted in the order in which they connected. */
static struct socket_end *oldest_other_end(const struct socket_end *end) {
  struct socket_end *oldest = NULL;
  for (uint32_t i = 0; i < SOCKET_ENDS_MAX; i++) {
    struct socket_end *other = &supply_table()->end[i];
    if (is_other_end(end, other) && (oldest == NULL || other->arrival < oldest->arrival))
      oldest = other;
  }
  return oldest;
}

/* With the lock. Where there is none left, the oldest has its other end elsewhere. */
static void keep(const struct socket_end *end) {
  struct supply_table *table = supply_table();
  struct socket_end *kept = &table->end[table->socket_arrivals % SOCKET_ENDS_MAX];
  *kept = *end;
  kept->arrival = ++table->socket_arrivals;
}

static void match(const struct socket_end *end) {
  uint64_t key = 0;
  supply_table_lock();
  struct socket_end *other = oldest_other_end(end);
  if (other != NULL) {
    key = other->key;
    other->key = 0;
  } else {
    keep(end);
  }
  supply_table_unlock();
  channels_connect(end->key, key);
}

void socket_end_connected(int descriptor) {
  struct socket_end end;
  if (!find(descriptor, &end))
    return;
  if (is_of_unix(&end))
    end.client = recording.process;
  match(&end);
}

void socket_end_accepted(int descriptor) {
  struct socket_end end;
  struct ucred client;
  uint32_t bytes = sizeof(client);
  if (!find(descriptor, &end))
    return;
  if (is_of_unix(&end) &&
      raw_system_call_of_5(SYS_getsockopt, (uintptr_t)descriptor, SOL_SOCKET, SO_PEERCRED,
                           (uintptr_t)&client, (uintptr_t)&bytes) == 0)
    end.client = client.pid;
  match(&end);
}

void socket_ends_are_pair(const struct system_call *call) {
  int end[2];
  size_t read;
  if (platform_read((const void *)(uintptr_t)call->argument[3], sizeof(end), end, &read))
    channels_connect(channel_key_of_descriptor(end[0]), channel_key_of_descriptor(end[1]));
}
