/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that makes the engine stop all others, again and again: an exec that fails does so when
 * it is recorded. */
#ifndef STOPS_H
#define STOPS_H

#include <stddef.h>
#include <unistd.h>

#define TIME_BETWEEN_STOPS_US 3000

static int is_over;

static void *stop_all(void *unused) {
  char *const nothing[] = {NULL};
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    execve("/nowhere", nothing, nothing);
    usleep(TIME_BETWEEN_STOPS_US);
  }
  return unused;
}

#endif
