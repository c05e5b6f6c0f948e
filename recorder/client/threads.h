/* SPDX-License-Identifier: Apache-2.0 */
/* The program's threads as the engine knows them, and for instrumented code the place of their
 * position. */
#ifndef THREADS_H
#define THREADS_H

#include "dr_api.h"
#include "thread.h"

void threads_init(void);
void threads_exit(void);

/* The raw TLS slot that holds the position. */
extern reg_id_t position_tls_segment;
extern uint position_tls_offset;

/* NULL before the thread has begun. */
struct thread *thread_of(void *drcontext);
/* The thread that calls. */
struct thread *thread_of_caller(void);

#endif
