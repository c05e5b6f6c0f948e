// SPDX-License-Identifier: Apache-2.0
#ifndef ATOMIC_WAIT_H
#define ATOMIC_WAIT_H

#ifdef __cplusplus
extern "C"
#endif
    void atomic_wait_barrier(unsigned threads);

#endif
