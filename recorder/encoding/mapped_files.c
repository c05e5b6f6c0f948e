/* SPDX-License-Identifier: Apache-2.0 */
#include "mapped_files.h"

#include "arena.h"
#include "decimal.h"
#include "platform.h"
#include "raw_system_call.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define MAPPINGS_MIN 256u

static struct {
  void *lock;
  struct file_mapping *mapping; /* in no order */
  uint32_t count, capacity;
} files;

void mapped_files_init(void) {
  files.lock = platform_mutex_create();
  files.capacity = MAPPINGS_MIN;
  files.mapping = pages_allocate(files.capacity * sizeof(struct file_mapping));
}

void mapped_files_exit(void) {
  pages_free(files.mapping, files.capacity * sizeof(struct file_mapping));
  platform_mutex_destroy(files.lock);
}

void mapped_files_after_fork(void) { files.lock = platform_mutex_create(); }

static uint64_t hash_of(const char *path) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (; *path != '\0'; path++)
    hash = (hash ^ (uint8_t)*path) * 0x100000001b3ull;
  return hash;
}

static void append(const struct file_mapping *mapping) {
  if (files.count == files.capacity) {
    size_t bytes = files.capacity * sizeof(struct file_mapping);
    struct file_mapping *larger = pages_allocate(2 * bytes);
    memcpy(larger, files.mapping, bytes);
    pages_free(files.mapping, bytes);
    files.mapping = larger;
    files.capacity *= 2;
  }
  files.mapping[files.count++] = *mapping;
}

void mapped_files_add(const struct kernel_map *map) {
  struct file_mapping mapping = {.start = map->start,
                                 .end = map->end,
                                 .offset = map->offset,
                                 .inode = map->inode,
                                 .device_major = map->device_major,
                                 .device_minor = map->device_minor,
                                 .path_hash = hash_of(map->name)};
  platform_mutex_lock(files.lock);
  append(&mapping);
  platform_mutex_unlock(files.lock);
}

void mapped_files_forget(uint64_t start, uint64_t length) {
  uint64_t end = start + length;
  platform_mutex_lock(files.lock);
  for (uint32_t i = files.count; i-- > 0;) {
    struct file_mapping whole = files.mapping[i];
    if (whole.end <= start || whole.start >= end)
      continue;
    files.mapping[i] = files.mapping[--files.count];
    struct file_mapping below = whole, above = whole;
    below.end = start;
    above.start = end;
    above.offset += end - whole.start;
    if (whole.start < start)
      append(&below);
    if (whole.end > end)
      append(&above);
  }
  platform_mutex_unlock(files.lock);
}

bool file_path_of(int descriptor, char path[KERNEL_MAP_NAME_MAX]) {
  char link[DESCRIPTOR_LINK_BYTES];
  descriptor_link(link, descriptor);
  long length =
      raw_system_call(SYS_readlink, (uintptr_t)link, (uintptr_t)path, KERNEL_MAP_NAME_MAX - 1);
  if (length <= 0)
    return false;
  path[length] = '\0';
  return path[0] == '/';
}

/* As the C library's major() and minor() take a device apart. */
static bool is_device(const struct file_mapping *mapping, uint64_t device) {
  return mapping->device_major == ((device >> 8 & 0xfff) | (device >> 32 & 0xfffff000)) &&
         mapping->device_minor == ((device & 0xff) | (device >> 12 & 0xffffff00));
}

/* Some file systems name another device in mappings than in a file's status; there the path, which
 * may have been renamed since, decides among files with the same number. */
static bool is_mapping_of(const struct file_mapping *mapping, int descriptor,
                          const struct stat *status) {
  if (mapping->inode != status->st_ino)
    return false;
  char path[KERNEL_MAP_NAME_MAX];
  return is_device(mapping, status->st_dev) ||
         (file_path_of(descriptor, path) && hash_of(path) == mapping->path_hash);
}

void mapped_files_each(int descriptor,
                       void (*visit)(const struct file_mapping *mapping, void *user_data),
                       void *user_data) {
  struct stat status;
  if (raw_system_call(SYS_fstat, (uintptr_t)descriptor, (uintptr_t)&status, 0) != 0)
    return;
  for (uint32_t i = 0;; i++) {
    struct file_mapping mapping;
    platform_mutex_lock(files.lock);
    bool is_there = i < files.count;
    if (is_there)
      mapping = files.mapping[i];
    platform_mutex_unlock(files.lock);
    if (!is_there)
      return;
    if (is_mapping_of(&mapping, descriptor, &status))
      visit(&mapping, user_data);
  }
}

uint64_t mapped_file_size(int descriptor) {
  struct stat status;
  if (raw_system_call(SYS_fstat, (uintptr_t)descriptor, (uintptr_t)&status, 0) != 0)
    return 0;
  return (uint64_t)status.st_size;
}
