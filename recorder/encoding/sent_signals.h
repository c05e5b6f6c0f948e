/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that recorded threads sent, until a recorded thread takes them. */
#ifndef SENT_SIGNALS_H
#define SENT_SIGNALS_H

#include "thread.h"

/* A call is about to send one: its place in the process clock; 0 where nobody that is recorded gets
 * it, or nothing. It comes before the call, as who gets the signal may be in the kernel, and goes
 * on at once. `dropped`: of so many it is forgotten who sent them. */
uint64_t sent_signals_send(struct thread *thread, const struct system_call *call,
                           uint32_t *dropped);
/* The call has failed. */
void sent_signals_withdraw(uint64_t clock);

/* The thread takes one: the place of who sent it; 0 where that is itself, or not known. */
uint64_t sent_signals_take(const struct thread *thread, uint32_t number);

#endif
