/* SPDX-License-Identifier: Apache-2.0 */
#include "mapped_files.h"

#include "raw_system_call.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

bool file_path_of(int descriptor, char path[KERNEL_MAP_NAME_MAX]) {
  char link[64];
  dr_snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  long length = raw_system_call(SYS_readlink, (reg_t)link, (reg_t)path, KERNEL_MAP_NAME_MAX - 1);
  if (length <= 0)
    return false;
  path[length] = '\0';
  return path[0] == '/';
}

struct visit {
  const char *path;
  void (*visit)(const struct kernel_map *map, void *user_data);
  void *user_data;
};

static bool pass_on(struct kernel_map *map, void *user_data) {
  const struct visit *visit = user_data;
  if (strcmp(map->name, visit->path) == 0)
    visit->visit(map, visit->user_data);
  return true;
}

void mapped_files_each(const char *path,
                       void (*visit)(const struct kernel_map *map, void *user_data),
                       void *user_data) {
  struct visit all = {path, visit, user_data};
  kernel_maps_each(pass_on, &all);
}

uint64_t mapped_file_size(int descriptor) {
  struct stat status;
  if (raw_system_call(SYS_fstat, (reg_t)descriptor, (reg_t)&status, 0) != 0)
    return 0;
  return (uint64_t)status.st_size;
}
