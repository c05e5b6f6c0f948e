/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the process as a whole: exec, which the recording follows, and fork, whose child
 * begins a record of its own (--children) or runs on without being recorded. */
#ifndef PROCESS_IMAGE_H
#define PROCESS_IMAGE_H

#include "thread.h"

/* Before an exec: should it succeed, nothing of this image is left to write what it holds. */
void process_image_before_exec(struct thread *thread, struct system_call *call);
void process_image_after_failed_exec(struct thread *thread);

/* The process is about to exit with this code. */
void process_image_exits(int code);

/* In the child of a fork, before it does anything: other threads are gone, and with them whoever
 * held a lock. Whether it is recorded. */
bool process_image_forks(struct thread *thread);

/* Whether this image came by an exec; then its first thread is the one that called it. */
bool process_image_is_later(void);

#endif
