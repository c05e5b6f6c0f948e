// SPDX-License-Identifier: Apache-2.0
//
// Stopping on purpose in the middle of the work, as a power cut would: no unwinding, no handlers.
// Programs say where something has just become durable; the N-th such point of the run is its last.
#ifndef CRASH_H
#define CRASH_H

#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

enum { EXIT_CRASHED = 3 };

// Which point ends the run, counted from 1 over all threads; 0 if none does.
static uint64_t crash_at;
static _Atomic uint64_t crash_points_passed;

static inline void crash_point(void) {
  if (crash_at != 0 && atomic_fetch_add(&crash_points_passed, 1) + 1 == crash_at)
    _exit(EXIT_CRASHED);
}

#endif
