// SPDX-License-Identifier: Apache-2.0
//
// WAIT_WHILE(CONDITION): how a thread polls, by -DWAIT=PLAIN, PAUSE, BACKOFF, YIELD, SLEEP or
// ADAPTIVE.
#ifndef WAIT_WHILE_H
#define WAIT_WHILE_H

#include <sched.h>
#include <time.h>

#define PLAIN 0
#define PAUSE 1
#define BACKOFF 2
#define YIELD 3
#define SLEEP 4
#define ADAPTIVE 5

#ifndef WAIT
#error "say how to wait: -DWAIT=PLAIN, PAUSE, BACKOFF, YIELD, SLEEP or ADAPTIVE"
#endif

#if WAIT == PLAIN
#define WAIT_WHILE(condition)                                                                      \
  do {                                                                                             \
  } while (condition)
#elif WAIT == PAUSE
#define WAIT_WHILE(condition)                                                                      \
  while (condition)                                                                                \
  __builtin_ia32_pause()
#elif WAIT == BACKOFF
// Twice as long after each look, up to a limit.
#define WAIT_WHILE(condition)                                                                      \
  for (unsigned delay = 1; condition; delay = delay < 1024 ? 2 * delay : delay)                    \
    for (unsigned left = delay; left > 0; left--)                                                  \
  __builtin_ia32_pause()
#elif WAIT == YIELD
#define WAIT_WHILE(condition)                                                                      \
  while (condition)                                                                                \
  sched_yield()
#elif WAIT == SLEEP
#define WAIT_WHILE(condition)                                                                      \
  while (condition)                                                                                \
  nanosleep(&(struct timespec){0}, NULL)
#elif WAIT == ADAPTIVE
// Lets others run after so many looks.
#define WAIT_WHILE(condition)                                                                      \
  for (unsigned looks = 1; condition; looks++)                                                     \
    if (looks % 64 == 0)                                                                           \
      sched_yield();                                                                               \
    else                                                                                           \
      __builtin_ia32_pause()
#endif

#endif
