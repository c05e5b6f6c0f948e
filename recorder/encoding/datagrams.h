/* SPDX-License-Identifier: Apache-2.0 */
/* Where datagrams go, by the addresses of the sockets that the program has. */
#ifndef DATAGRAMS_H
#define DATAGRAMS_H

#include <stdint.h>

/* The socket has got an address: by a call, or because it has sent something. */
void datagrams_bound(int descriptor);

/* The channel that a send through a socket goes to, if that is one of datagrams: at the address in
 * the program's memory (0: the one that it is connected to). 0: it is none of the program's. A
 * socket of any other kind is its own. */
uint64_t datagram_channel(int descriptor, uint64_t key, uint64_t address, uint64_t bytes);

#endif
