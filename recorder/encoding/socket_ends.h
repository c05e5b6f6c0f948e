/* SPDX-License-Identifier: Apache-2.0 */
/* Each end of a connection is seen by itself: they belong together where each is the other's peer.
 */
#ifndef SOCKET_ENDS_H
#define SOCKET_ENDS_H

#include "thread.h"

/* A socket has been connected, or has been accepted: its other end, if that is known. */
void socket_end_connected(int descriptor);
void socket_end_accepted(int descriptor);
/* A socketpair was made. */
void socket_ends_are_pair(const struct system_call *call);

#endif
