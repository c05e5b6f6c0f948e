/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/self/maps. */
#ifndef KERNEL_MAPS_H
#define KERNEL_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_MAP_NAME_MAX 1024

struct kernel_map {
  uint64_t start, end;
  uint64_t offset;
  uint32_t device_major, device_minor;
  uint64_t inode;     /* 0 where there is no file */
  uint8_t protection; /* 1 read, 2 write, 4 execute */
  bool is_shared;     /* what is written there, others see */
  char name[KERNEL_MAP_NAME_MAX];
};

/* Calls `visit` for each mapping, in the order of addresses, until it returns false. */
void kernel_maps_each(bool (*visit)(struct kernel_map *map, void *user_data), void *user_data);

/* The mapping around the address; false where there is none. */
bool kernel_map_at(uint64_t address, struct kernel_map *found);

/* What tells its inode from others: of a segment of System V, none of the kernel's devices. */
uint64_t kernel_map_device(const struct kernel_map *map);

#endif
