/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the process as a whole: exec, which the recording follows, and fork, whose child
 * begins a record of its own (--children) or runs on without being recorded. */
#ifndef PROCESS_IMAGE_H
#define PROCESS_IMAGE_H

#include "thread.h"

void process_image_init(void);
void process_image_exit(void);

/* Before an exec: should it succeed, nothing of this image is left to write what it holds. */
void process_image_before_exec(struct thread *thread, struct system_call *call);
void process_image_after_failed_exec(struct thread *thread);

/* The process is about to exit with this code. */
void process_image_exits(int code);

/* Before a system call of an unrecorded child: its exec happens without the engine, natively. */
void process_image_before_childs_call(int number);

/* Whether this image came by an exec; then its first thread is the one that called it. */
bool process_image_is_later(void);

#endif
