/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of this process in /proc/self/stat. */
#ifndef PROCESS_STATUS_H
#define PROCESS_STATUS_H

#include <stdint.h>

/* Numbers of fields, as proc(5) counts them. */
enum process_status_field { STATUS_PARENT = 4, STATUS_START_TIME = 22, STATUS_START_STACK = 28 };

/* 0 where the kernel does not say. */
uint64_t process_status(enum process_status_field field);

#endif
