/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of a thread that has the baton. Those that could block are made here, or made only
 * when they will not block: the baton is given away meanwhile, and comes back at the thread's turn.
 * Futexes are a table of our own; clocks and sleeps follow the estimated clocks. */
#ifndef BATON_CALLS_H
#define BATON_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Newer than the headers may be. */
#define CALL_EPOLL_PWAIT2 441

struct thread;
struct system_call;

enum baton_call {
  CALL_GOES_ON,      /* the kernel makes it, now */
  CALL_BLOCKS,       /* likewise, and takes its time; nobody else is there */
  CALL_GOES_OUTSIDE, /* likewise, but nobody knows for how long: without the baton */
  CALL_IS_MADE,      /* it has been made, with this result */
  CALL_RESTARTS,     /* a signal ended it: it is made again where the handler allows */
};

enum baton_call baton_call(struct thread *thread, const struct system_call *call, int64_t *result);

/* Behind a call that the kernel has made. */
void baton_call_ends(struct thread *thread, const struct system_call *call, int64_t result);

#endif
