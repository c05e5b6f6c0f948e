/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_place.h"

#include "complaint.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The client takes whatever begins with the first part out of the program's environment. */
#define ENGINE_PREFIX "DYNAMORIO_"
#define FILL_NAME ENGINE_PREFIX "FILL"

/* Usual paths fit into one, so that the stack of most installations is at the same place. */
#define UNIT_BYTES 4096u

static size_t string_bytes(const char *string) { return strlen(string) + 1; }

/* As long as the one that the program will get: both are of the same kernel. */
static size_t auxiliary_vector_bytes(void) {
  Elf64_auxv_t entry;
  size_t bytes = 0;
  FILE *file = fopen("/proc/self/auxv", "re");
  if (file == NULL)
    fail(EXIT_OURS, "/proc/self/auxv: %s", strerror(errno));
  do
    bytes += sizeof(entry);
  while (fread(&entry, sizeof(entry), 1, file) == 1 && entry.a_type != AT_NULL);
  fclose(file);
  return bytes;
}

void stack_place_fix(const char *engine) {
  size_t bytes = auxiliary_vector_bytes() + string_bytes(engine) + sizeof(FILL_NAME "=");
  unsetenv(FILL_NAME);
  for (char **variable = environ; *variable != NULL; variable++)
    if (strncmp(*variable, ENGINE_PREFIX, strlen(ENGINE_PREFIX)) == 0)
      bytes += string_bytes(*variable);
  size_t missing = (UNIT_BYTES - bytes % UNIT_BYTES) % UNIT_BYTES;
  char fill[UNIT_BYTES];
  memset(fill, '-', missing);
  fill[missing] = '\0';
  if (setenv(FILL_NAME, fill, 1) != 0)
    fail(EXIT_OURS, "out of memory");
}
