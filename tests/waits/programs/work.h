// SPDX-License-Identifier: Apache-2.0
//
// The work that threads do between waits, in units that all take the same time: each depends on the
// one before, in memory of the thread's own. It is compiled in one way, whatever the program is.
#ifndef WORK_H
#define WORK_H

enum { WORKERS_MAX = 4, LINE_BYTES = 64 };

void work(unsigned thread, unsigned units);

#endif
