/* SPDX-License-Identifier: Apache-2.0 */
#include "unrecorded_children.h"

#include "platform.h"
#include "raw_system_call.h"
#include "recording.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The process's entry, made where there is none; NULL where there is no room. Parent and child may
 * look at the same time, in processes of their own. */
static struct unrecorded_child *entry_of(int32_t process) {
  for (uint32_t i = 0; i < CONTROL_UNRECORDED_MAX; i++) {
    struct unrecorded_child *entry = &recording.area->unrecorded[i];
    int32_t found = 0;
    if (__atomic_compare_exchange_n(&entry->process, &found, process, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST) ||
        found == process)
      return entry;
  }
  return NULL;
}

/* The last part of a path, as much as there is room for. */
static void set_name(char into[CONTROL_NAME_BYTES], const char *path) {
  const char *name = path;
  for (const char *at = path; *at != '\0'; at++) {
    if (*at == '/')
      name = at + 1;
  }
  size_t length = strlen(name);
  if (length >= CONTROL_NAME_BYTES)
    length = CONTROL_NAME_BYTES - 1;
  memcpy(into, name, length);
  into[length] = '\0';
}

/* Likewise, of a path in the program's memory. */
static void read_name(char into[CONTROL_NAME_BYTES], const char *path) {
  char text[CONTROL_PATH_BYTES];
  size_t count = 0, read;
  while (count < sizeof(text) - 1 && platform_read(path + count, 1, &text[count], &read) &&
         text[count] != '\0')
    count++;
  text[count] = '\0';
  set_name(into, text);
}

void unrecorded_child_runs(int32_t process, const char *path) {
  if (recording.area == NULL)
    return;
  struct unrecorded_child *entry = entry_of(process);
  if (entry != NULL && path != NULL)
    read_name(entry->name, path);
}

void unrecorded_child_executes(int32_t process, const char *path) {
  unrecorded_child_runs(process, path);
  struct unrecorded_child *entry = recording.area == NULL ? NULL : entry_of(process);
  if (entry != NULL)
    entry->has_executed = 1;
}

void unrecorded_child_shares_memory(int32_t process) {
  struct unrecorded_child *entry = entry_of(process);
  if (entry != NULL)
    entry->shares_memory = 1;
}

void program_begins(void) {
  char path[CONTROL_PATH_BYTES];
  struct stat status;
  platform_program_path(path, sizeof(path));
  if (recording.control != NULL)
    set_name(recording.control->program, path);
  if (raw_system_call(SYS_stat, (uintptr_t)path, (uintptr_t)&status, 0) != 0)
    return;
  bool runs_as_user = (status.st_mode & S_ISUID) != 0 &&
                      status.st_uid != (uid_t)raw_system_call(SYS_geteuid, 0, 0, 0);
  bool runs_as_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
                       status.st_gid != (gid_t)raw_system_call(SYS_getegid, 0, 0, 0);
  if (runs_as_user || runs_as_group)
    set_name(recording.area->set_id_program, path);
}
