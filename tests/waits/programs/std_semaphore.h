// SPDX-License-Identifier: Apache-2.0
#ifndef STD_SEMAPHORE_H
#define STD_SEMAPHORE_H

#ifdef __cplusplus
extern "C" {
#endif
void std_free_places_acquire(void);
void std_free_places_release(void);
void std_items_acquire(void);
void std_items_release(void);
#ifdef __cplusplus
}
#endif

#endif
