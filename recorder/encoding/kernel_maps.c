/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_maps.h"

#include "platform.h"

#include <string.h>

#define READ_BYTES 4096u
#define LINE_BYTES (KERNEL_MAP_NAME_MAX + 128u)

static const char *parse_hexadecimal(const char *at, uint64_t *value) {
  *value = 0;
  for (;; at++) {
    if (*at >= '0' && *at <= '9')
      *value = *value << 4 | (uint64_t)(*at - '0');
    else if (*at >= 'a' && *at <= 'f')
      *value = *value << 4 | (uint64_t)(*at - 'a' + 10);
    else
      return at;
  }
}

static const char *parse_decimal(const char *at, uint64_t *value) {
  *value = 0;
  for (; *at >= '0' && *at <= '9'; at++)
    *value = *value * 10 + (uint64_t)(*at - '0');
  return at;
}

static const char *skip_field(const char *at) {
  while (*at != ' ' && *at != '\0')
    at++;
  while (*at == ' ')
    at++;
  return at;
}

/* "start-end rwxp offset device inode   name" */
static void parse(const char *line, struct kernel_map *map) {
  const char *at = parse_hexadecimal(line, &map->start);
  at = parse_hexadecimal(at + 1, &map->end);
  at = skip_field(at);
  map->protection =
      (uint8_t)((at[0] == 'r' ? 1 : 0) | (at[1] == 'w' ? 2 : 0) | (at[2] == 'x' ? 4 : 0));
  map->is_shared = at[3] == 's';
  at = skip_field(at);
  parse_hexadecimal(at, &map->offset);
  uint64_t device_major, device_minor;
  at = parse_hexadecimal(skip_field(at), &device_major);
  parse_hexadecimal(at + 1, &device_minor);
  map->device_major = (uint32_t)device_major;
  map->device_minor = (uint32_t)device_minor;
  at = skip_field(at);
  parse_decimal(at, &map->inode);
  at = skip_field(at);
  size_t length = strlen(at);
  if (length >= sizeof(map->name))
    length = sizeof(map->name) - 1;
  memcpy(map->name, at, length);
  map->name[length] = '\0';
}

void kernel_maps_each(bool (*visit)(struct kernel_map *map, void *user_data), void *user_data) {
  char bytes[READ_BYTES], line[LINE_BYTES];
  struct kernel_map map;
  size_t length = 0;
  int file = platform_open_to_read("/proc/self/maps");
  if (file < 0)
    return;
  ptrdiff_t count;
  bool goes_on = true;
  while (goes_on && (count = platform_read_file(file, bytes, sizeof(bytes))) > 0) {
    for (ptrdiff_t i = 0; i < count && goes_on; i++) {
      if (bytes[i] != '\n') {
        if (length < sizeof(line) - 1)
          line[length++] = bytes[i];
        continue;
      }
      line[length] = '\0';
      length = 0;
      parse(line, &map);
      platform_complete_mapping(&map);
      goes_on = visit(&map, user_data);
    }
  }
  platform_close_file(file);
}

struct search {
  uint64_t address;
  struct kernel_map *found;
  bool has_found;
};

static bool keep_if_around(struct kernel_map *map, void *user_data) {
  struct search *search = user_data;
  if (search->address < map->start || search->address >= map->end)
    return true;
  *search->found = *map;
  search->has_found = true;
  return false;
}

bool kernel_map_at(uint64_t address, struct kernel_map *found) {
  struct search search = {.address = address, .found = found};
  kernel_maps_each(keep_if_around, &search);
  return search.has_found;
}

/* The inode of a segment of System V is its identifier, and its device that of other memory. */
#define DEVICE_OF_SEGMENTS UINT64_MAX
#define SEGMENT_NAME "/SYSV"

uint64_t kernel_map_device(const struct kernel_map *map) {
  if (strncmp(map->name, SEGMENT_NAME, sizeof(SEGMENT_NAME) - 1) == 0)
    return DEVICE_OF_SEGMENTS;
  return (uint64_t)map->device_major << 32 | map->device_minor;
}
