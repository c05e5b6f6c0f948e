// SPDX-License-Identifier: Apache-2.0
//
// Two threads hand a token back and forth over a socket pair, and work while they have it.
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 2
#include "rounds.h"

static int ends[2];

__attribute__((constructor)) static void begin(void) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    abort();
}

static void run(unsigned thread) {
  char token = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    if ((thread != 0 || round != 0) && read(ends[thread], &token, 1) != 1)
      abort();
    work(thread, thread == 0 ? LONG_WORK : SHORT_WORK);
    if (write(ends[thread], &token, 1) != 1)
      abort();
  }
}

static struct path critical_path(void) {
  return path_then(path_then((struct path){0}, 0, ROUNDS * LONG_WORK), 1, ROUNDS * SHORT_WORK);
}
