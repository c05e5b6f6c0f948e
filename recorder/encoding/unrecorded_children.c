/* SPDX-License-Identifier: Apache-2.0 */
#include "unrecorded_children.h"

#include "platform.h"
#include "recording.h"

#include <string.h>

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

void unrecorded_child_runs(int32_t process, const char *path) {
  if (recording.area == NULL)
    return;
  struct unrecorded_child *entry = entry_of(process);
  if (entry == NULL || path == NULL)
    return;
  char text[CONTROL_PATH_BYTES];
  size_t count = 0, read;
  while (count < sizeof(text) - 1 && platform_read(path + count, 1, &text[count], &read) &&
         text[count] != '\0')
    count++;
  text[count] = '\0';
  const char *name = text;
  for (const char *at = text; *at != '\0'; at++) {
    if (*at == '/')
      name = at + 1;
  }
  size_t length = strlen(name);
  if (length >= sizeof(entry->name))
    length = sizeof(entry->name) - 1;
  memcpy(entry->name, name, length);
  entry->name[length] = '\0';
}
