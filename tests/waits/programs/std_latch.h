// SPDX-License-Identifier: Apache-2.0
#ifndef STD_LATCH_H
#define STD_LATCH_H

enum { STD_LATCHES = 64, STD_LATCH_THREADS = 4 };

#ifdef __cplusplus
extern "C" {
#endif
void std_latch_arrive_and_wait(unsigned latch);
#ifdef __cplusplus
}
#endif

#endif
