/* SPDX-License-Identifier: Apache-2.0 */
#include "datagrams.h"

#include "channel_key.h"
#include "channels.h"
#include "platform.h"
#include "raw_system_call.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

union address {
  uint8_t bytes[SOCKET_ADDRESS_BYTES];
  sa_family_t family;
  struct sockaddr_in four;
  struct sockaddr_in6 six;
  struct sockaddr_un unix_path;
};

static bool has_datagrams(int descriptor) {
  int type;
  uint32_t bytes = sizeof(type);
  return raw_system_call_of_5(SYS_getsockopt, (uintptr_t)descriptor, SOL_SOCKET, SO_TYPE,
                              (uintptr_t)&type, (uintptr_t)&bytes) == 0 &&
         type == SOCK_DGRAM;
}

static bool ask_address(long call, int descriptor, union address *address) {
  uint32_t bytes = SOCKET_ADDRESS_BYTES;
  *address = (union address){{0}};
  return raw_system_call(call, (uintptr_t)descriptor, (uintptr_t)address, (uintptr_t)&bytes) == 0;
}

/* Whether there is a port, or a name. */
static bool is_named(const union address *address) {
  switch (address->family) {
  case AF_INET:
    return address->four.sin_port != 0;
  case AF_INET6:
    return address->six.sin6_port != 0;
  case AF_UNIX:
    return memcmp(address->bytes + sizeof(sa_family_t), (char[2]){0}, 2) != 0;
  default:
    return false;
  }
}

static bool is_any(const struct in6_addr *address) {
  const struct in6_addr any = IN6ADDR_ANY_INIT;
  return memcmp(address, &any, sizeof(any)) == 0;
}

/* Whether what is sent to an address comes to a socket that is bound to the other one. */
static bool leads_to(const union address *to, const union address *bound) {
  if (to->family != bound->family)
    return false;
  switch (to->family) {
  case AF_INET:
    return to->four.sin_port == bound->four.sin_port &&
           (to->four.sin_addr.s_addr == bound->four.sin_addr.s_addr ||
            bound->four.sin_addr.s_addr == INADDR_ANY || to->four.sin_addr.s_addr == INADDR_ANY);
  case AF_INET6:
    return to->six.sin6_port == bound->six.sin6_port &&
           (memcmp(&to->six.sin6_addr, &bound->six.sin6_addr, sizeof(struct in6_addr)) == 0 ||
            is_any(&bound->six.sin6_addr) || is_any(&to->six.sin6_addr));
  default:
    return memcmp(to->bytes, bound->bytes, SOCKET_ADDRESS_BYTES) == 0;
  }
}

/* With the lock. NULL where there is none. */
static struct bound_socket *bound_of(uint64_t key) {
  for (uint32_t i = 0; i < BOUND_SOCKETS_MAX; i++) {
    if (supply_table()->bound[i].key == key)
      return &supply_table()->bound[i];
  }
  return NULL;
}

void datagrams_bound(int descriptor) {
  struct supply_table *table = supply_table();
  uint64_t key = channel_key_of_descriptor(descriptor);
  union address address;
  if (key == 0 || !has_datagrams(descriptor) ||
      !ask_address(SYS_getsockname, descriptor, &address) || !is_named(&address))
    return;
  supply_table_lock();
  struct bound_socket *place = bound_of(key);
  if (place == NULL)
    place = &table->bound[table->sockets_bound++ % BOUND_SOCKETS_MAX];
  place->key = key;
  place->arrival = table->sockets_bound;
  memcpy(place->address, address.bytes, SOCKET_ADDRESS_BYTES);
  supply_table_unlock();
}

/* The one that was bound last: one before it may be closed. */
static uint64_t find(const union address *to) {
  uint64_t key = 0, arrival = 0;
  supply_table_lock();
  for (uint32_t i = 0; i < BOUND_SOCKETS_MAX; i++) {
    const struct bound_socket *socket = &supply_table()->bound[i];
    union address bound;
    memcpy(bound.bytes, socket->address, SOCKET_ADDRESS_BYTES);
    if (socket->key != 0 && socket->arrival >= arrival && leads_to(to, &bound)) {
      key = socket->key;
      arrival = socket->arrival;
    }
  }
  supply_table_unlock();
  return key;
}

/* Behind a path, whatever the program has there means nothing. */
static bool read_address(uint64_t from, uint64_t bytes, union address *address) {
  size_t read;
  *address = (union address){{0}};
  if (bytes > SOCKET_ADDRESS_BYTES)
    bytes = SOCKET_ADDRESS_BYTES;
  if (!platform_read((const void *)(uintptr_t)from, bytes, address->bytes, &read))
    return false;
  char *path = address->unix_path.sun_path;
  if (address->family == AF_UNIX && path[0] != '\0') {
    size_t length = strlen(path);
    memset(path + length, 0, SOCKET_ADDRESS_BYTES - sizeof(sa_family_t) - length);
  }
  return true;
}

uint64_t datagram_channel(int descriptor, uint64_t key, uint64_t address, uint64_t bytes) {
  union address to;
  if (key == 0 || channel_kind(key) != CHANNEL_OF_MESSAGES || !has_datagrams(descriptor) ||
      channels_have_peer(key))
    return key;
  bool is_known = address != 0 ? read_address(address, bytes, &to)
                               : ask_address(SYS_getpeername, descriptor, &to);
  datagrams_bound(descriptor); /* Answers come there. */
  return is_known ? find(&to) : 0;
}
