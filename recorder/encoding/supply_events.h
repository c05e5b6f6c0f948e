/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread's record says of supplies: events 42, 43 and 47. */
#ifndef SUPPLY_EVENTS_H
#define SUPPLY_EVENTS_H

#include "channels.h"
#include "thread.h"

/* Who takes what is forgotten comes behind nothing. */
void supply_events_dropped(struct thread *thread, uint32_t count);
/* The thread has supplied; an edge without a channel is a dropped one. */
void supply_events_made(struct thread *thread, struct transfer_edge edge);
/* The thread has consumed: one without a clock is none. */
void supply_events_consumed(struct thread *thread, struct transfer_edge edge);

#endif
