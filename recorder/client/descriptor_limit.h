/* SPDX-License-Identifier: Apache-2.0 */
/* The program's limit on open files (RLIMIT_NOFILE). The kernel has another, since the engine's
 * descriptors lie above all of the program's; the program's own is applied here, call by call. */
#ifndef DESCRIPTOR_LIMIT_H
#define DESCRIPTOR_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* At the start of an image, with what an image before it, the parent or the launcher left. */
void descriptor_limit_init(void);
/* In a forked child that is recorded. */
void descriptor_limit_continue_in_child(void);
/* Leaves it to the kernel, for a program that runs without the engine. */
void descriptor_limit_apply(void);

struct rlimit descriptor_limit(void);
void descriptor_limit_set(struct rlimit limit);

/* Whether the limit lets a system call through; otherwise `error` is its negative errno. */
bool descriptor_limit_allows(int number, const uint64_t *argument, int64_t *error);

#endif
