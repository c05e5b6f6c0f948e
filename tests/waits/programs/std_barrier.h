// SPDX-License-Identifier: Apache-2.0
#ifndef STD_BARRIER_H
#define STD_BARRIER_H

enum { STD_BARRIER_THREADS = 4 };

#ifdef __cplusplus
extern "C"
#endif
    void std_barrier_wait(void);

#endif
