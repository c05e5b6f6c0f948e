// SPDX-License-Identifier: Apache-2.0
//
// A mutex that nobody else wants is taken and given back: what the calls execute is work.
#include "working.h"

enum { PAIRS = 10000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t run(void) {
  for (unsigned pair = 0; pair < PAIRS; pair++) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
  return PAIRS * 30;
}
