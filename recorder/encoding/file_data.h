/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a mapped file hold data: a file may be far longer than what was ever written. */
#ifndef FILE_DATA_H
#define FILE_DATA_H

#include "kernel_maps.h"

#include <stdint.h>

/* Calls `visit` for each piece of the mapping behind which the file has data, as addresses; for the
 * whole mapping where the file system does not tell. The rest is zero. */
void file_data_each(const struct kernel_map *map,
                    void (*visit)(uint64_t start, uint64_t bytes, void *user_data),
                    void *user_data);

#endif
