/* SPDX-License-Identifier: Apache-2.0 */
#include "initial_stack.h"

#include "process_status.h"
#include "random_bytes.h"
#include "recording.h"

#include <elf.h>
#include <stddef.h>

#define RANDOM_BYTES 16

uint64_t initial_stack_pointer(void) { return process_status(STATUS_START_STACK); }

/* Behind the arguments and the environment, each of which ends by a NULL. */
static Elf64_auxv_t *auxiliary_vector(void) {
  uint64_t *word = (uint64_t *)initial_stack_pointer();
  if (word == NULL)
    return NULL;
  word += 1 + *word + 1;
  while (*word++ != 0)
    ;
  return (Elf64_auxv_t *)word;
}

void initial_stack_hide_chance(void) {
  Elf64_auxv_t *entry = auxiliary_vector();
  for (; entry != NULL && entry->a_type != AT_NULL; entry++) {
    if (entry->a_type == AT_RANDOM)
      random_bytes((void *)entry->a_un.a_val, RANDOM_BYTES);
    else if (entry->a_type == AT_SYSINFO_EHDR && !recording.area->real_time)
      entry->a_type = AT_IGNORE;
  }
}
