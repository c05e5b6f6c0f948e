/* SPDX-License-Identifier: Apache-2.0 */
/* Where files are mapped in the program, kept up to date as mappings come and go: system calls that
 * name a file ask for it, and reading the kernel's list each time would cost more than they do. */
#ifndef MAPPED_FILES_H
#define MAPPED_FILES_H

#include "kernel_maps.h"

#include <stdbool.h>
#include <stdint.h>

struct file_mapping {
  uint64_t start, end;
  uint64_t offset; /* in the file, of `start` */
  uint64_t inode;
  uint32_t device_major, device_minor;
  uint64_t path_hash; /* of the path that it had when it was mapped */
};

void mapped_files_init(void);
void mapped_files_exit(void);
/* In a forked child: whoever held the lock is gone. */
void mapped_files_after_fork(void);

/* A file was mapped where nothing is mapped now. */
void mapped_files_add(const struct kernel_map *map);
/* No file is mapped here any more. */
void mapped_files_forget(uint64_t start, uint64_t length);

/* Calls `visit` for each mapping of the open file. */
void mapped_files_each(int descriptor,
                       void (*visit)(const struct file_mapping *mapping, void *user_data),
                       void *user_data);

/* The path behind a file descriptor as the kernel names it in mappings too; false where it has
 * none. */
bool file_path_of(int descriptor, char path[KERNEL_MAP_NAME_MAX]);

/* Size of an open file in bytes; 0 where it has none. */
uint64_t mapped_file_size(int descriptor);

#endif
