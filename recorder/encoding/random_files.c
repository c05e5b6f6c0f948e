/* SPDX-License-Identifier: Apache-2.0 */
#include "random_files.h"

#include "mapped_files.h"
#include "platform.h"
#include "random_bytes.h"
#include "raw_system_call.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Each time that it is read it has another identifier (RFC 9562, version 4). */
#define IDENTIFIERS "/proc/sys/kernel/random/uuid"
#define IDENTIFIER_FORM "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx\n"
#define IDENTIFIER_BYTES (sizeof(IDENTIFIER_FORM) - 1)

/* /dev/random and /dev/urandom. */
static bool is_device(const struct stat *status) {
  return S_ISCHR(status->st_mode) && major(status->st_rdev) == 1 &&
         (minor(status->st_rdev) == 8 || minor(status->st_rdev) == 9);
}

static bool has_identifiers(const struct stat *status, int descriptor) {
  char path[KERNEL_MAP_NAME_MAX];
  return S_ISREG(status->st_mode) && status->st_size == 0 && file_path_of(descriptor, path) &&
         strcmp(path, IDENTIFIERS) == 0;
}

static void draw_identifier(char identifier[IDENTIFIER_BYTES]) {
  static const char digits[] = "0123456789abcdef";
  uint8_t drawn[IDENTIFIER_BYTES];
  random_bytes(drawn, sizeof(drawn));
  for (size_t at = 0; at < IDENTIFIER_BYTES; at++) {
    char form = IDENTIFIER_FORM[at];
    if (form == 'x')
      identifier[at] = digits[drawn[at] % 16];
    else
      identifier[at] = form == 'y' ? digits[8 + drawn[at] % 4] : form;
  }
}

bool random_file_read(const struct system_call *call, const struct stat *status, int64_t *result) {
  uintptr_t descriptor = call->argument[0];
  if (is_device(status)) {
    *result = random_fill(call->argument[1], call->argument[2]);
    return true;
  }
  if (!has_identifiers(status, (int)descriptor))
    return false;
  long position = raw_system_call(SYS_lseek, descriptor, 0, SEEK_CUR);
  if (position < 0 || position >= (long)IDENTIFIER_BYTES)
    return false;
  char identifier[IDENTIFIER_BYTES];
  draw_identifier(identifier);
  uint64_t bytes = IDENTIFIER_BYTES - (uint64_t)position;
  if (bytes > call->argument[2])
    bytes = call->argument[2];
  if (!platform_write(call->argument[1], identifier + position, bytes)) {
    *result = -EFAULT;
    return true;
  }
  raw_system_call(SYS_lseek, descriptor, (uintptr_t)position + bytes, SEEK_SET);
  *result = (int64_t)bytes;
  return true;
}
