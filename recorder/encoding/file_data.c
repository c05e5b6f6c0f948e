/* SPDX-License-Identifier: Apache-2.0 */
#include "file_data.h"

#include "decimal.h"
#include "raw_system_call.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SEEK_DATA
#define SEEK_DATA 3
#define SEEK_HOLE 4
#endif

/* Opens the mapped file for reading; negative where it has no path any more, or is none that
 * opening does nothing to. */
static int open_mapped(const struct kernel_map *map) {
  struct stat status;
  char link[DESCRIPTOR_LINK_BYTES];
  long path = raw_system_call(SYS_open, (uintptr_t)map->name, O_PATH | O_CLOEXEC, 0);
  if (path < 0)
    return -1;
  long file = -1;
  if (raw_system_call(SYS_fstat, (uintptr_t)path, (uintptr_t)&status, 0) == 0 &&
      S_ISREG(status.st_mode) && status.st_ino == map->inode) {
    descriptor_link(link, (int)path);
    file = raw_system_call(SYS_open, (uintptr_t)link, O_RDONLY | O_CLOEXEC, 0);
  }
  raw_system_call(SYS_close, (uintptr_t)path, 0, 0);
  return (int)file;
}

void file_data_each(const struct kernel_map *map,
                    void (*visit)(uint64_t start, uint64_t bytes, void *user_data),
                    void *user_data) {
  uint64_t at = map->offset, end = map->offset + (map->end - map->start);
  int file = open_mapped(map);
  while (at < end) {
    long data = file < 0 ? -EBADF : raw_system_call(SYS_lseek, (uintptr_t)file, at, SEEK_DATA);
    if (data == -ENXIO || (data >= 0 && (uint64_t)data >= end))
      break;
    long hole =
        data < 0 ? data : raw_system_call(SYS_lseek, (uintptr_t)file, (uintptr_t)data, SEEK_HOLE);
    if (data < 0)
      data = (long)at;
    uint64_t piece_end = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
    visit(map->start + ((uint64_t)data - map->offset), piece_end - (uint64_t)data, user_data);
    at = piece_end;
  }
  if (file >= 0)
    raw_system_call(SYS_close, (uintptr_t)file, 0, 0);
}
