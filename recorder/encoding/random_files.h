/* SPDX-License-Identifier: Apache-2.0 */
/* Files in which the kernel has random bytes: who reads one gets those of the seed. */
#ifndef RANDOM_FILES_H
#define RANDOM_FILES_H

#include "thread.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Makes a call of `read`, if its descriptor, whose status this is, is such a file. */
bool random_file_read(const struct system_call *call, const struct stat *status, int64_t *result);

#endif
