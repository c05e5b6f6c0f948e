/* SPDX-License-Identifier: Apache-2.0 */
/* Where files that system calls name are mapped in the program. */
#ifndef MAPPED_FILES_H
#define MAPPED_FILES_H

#include "dr_api.h"
#include "kernel_maps.h"

#include <stdint.h>

/* The path behind a file descriptor as the kernel names it in mappings too; false where it has
 * none.
 */
bool file_path_of(int descriptor, char path[KERNEL_MAP_NAME_MAX]);

/* Calls `visit` for each mapping of the file with this path, in the order of addresses. */
void mapped_files_each(const char *path,
                       void (*visit)(const struct kernel_map *map, void *user_data),
                       void *user_data);

/* Size of an open file in bytes; 0 where it has none. */
uint64_t mapped_file_size(int descriptor);

#endif
