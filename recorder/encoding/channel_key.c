/* SPDX-License-Identifier: Apache-2.0 */
#include "channel_key.h"

#include "decimal.h"
#include "raw_system_call.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define SEMAPHORE_BITS 16 /* of its number within its set */
#define DEVICE_SHIFT 40
#define TEXT_BYTES 512

enum channel_kind channel_kind(uint64_t key) {
  return (enum channel_kind)(key & ((1u << CHANNEL_KIND_BITS) - 1));
}

static uint64_t key_of(uint64_t number, enum channel_kind kind) {
  return number << CHANNEL_KIND_BITS | (uint64_t)kind;
}

static void read_information(int descriptor, char text[TEXT_BYTES]) {
  static const char folder[] = "/proc/self/fdinfo/";
  char path[sizeof(folder) + DECIMAL_BYTES_MAX];
  memcpy(path, folder, sizeof(folder));
  decimal_write(path + sizeof(folder) - 1, (uint32_t)descriptor);
  long bytes = -1;
  long file = raw_system_call(SYS_open, (uintptr_t)path, O_RDONLY | O_CLOEXEC, 0);
  if (file >= 0) {
    bytes = raw_system_call(SYS_read, (uintptr_t)file, (uintptr_t)text, TEXT_BYTES - 1);
    raw_system_call(SYS_close, (uintptr_t)file, 0, 0);
  }
  text[bytes < 0 ? 0 : bytes] = '\0';
}

bool descriptor_number(int descriptor, const char *name, uint64_t *number) {
  char text[TEXT_BYTES];
  const char *at = text;
  size_t length = strlen(name);
  read_information(descriptor, text);
  while (*at != '\0' && strncmp(at, name, length) != 0)
    at++;
  if (*at == '\0')
    return false;
  for (at += length; *at == ' ' || *at == '\t'; at++)
    ;
  *number = 0;
  for (; *at >= '0' && *at <= '9'; at++)
    *number = 10 * *number + (uint64_t)(*at - '0');
  return true;
}

bool socket_has_messages(int descriptor) {
  int type;
  uint32_t bytes = sizeof(type);
  return raw_system_call_of_5(SYS_getsockopt, (uintptr_t)descriptor, SOL_SOCKET, SO_TYPE,
                              (uintptr_t)&type, (uintptr_t)&bytes) == 0 &&
         type != SOCK_STREAM;
}

static uint64_t number_of(const struct stat *status) {
  return (uint64_t)status->st_dev << DEVICE_SHIFT ^ (uint64_t)status->st_ino;
}

uint64_t channel_key_of_descriptor(int descriptor) {
  struct stat status;
  uint64_t number;
  if (raw_system_call(SYS_fstat, (uintptr_t)descriptor, (uintptr_t)&status, 0) != 0)
    return 0;
  switch (status.st_mode & S_IFMT) {
  case S_IFSOCK:
    return key_of(number_of(&status),
                  socket_has_messages(descriptor) ? CHANNEL_OF_MESSAGES : CHANNEL_OF_BYTES);
  case S_IFIFO:
    return key_of(number_of(&status), CHANNEL_OF_BYTES);
  case 0: /* All eventfds have the same inode; the kernel numbers them elsewhere. */
    return descriptor_number(descriptor, "eventfd-id:", &number) ? key_of(number, CHANNEL_OF_COUNTS)
                                                                 : 0;
  default:
    return 0;
  }
}

uint64_t channel_key_of_queue(int identifier) {
  return key_of((uint32_t)identifier, CHANNEL_OF_QUEUE);
}

uint64_t channel_key_of_semaphore(int identifier, uint64_t number) {
  return key_of((uint64_t)(uint32_t)identifier << SEMAPHORE_BITS | number, CHANNEL_OF_SEMAPHORE);
}

static uint64_t key_of_file(int descriptor, enum channel_kind kind) {
  struct stat status;
  if (raw_system_call(SYS_fstat, (uintptr_t)descriptor, (uintptr_t)&status, 0) != 0)
    return 0;
  return key_of(number_of(&status), kind);
}

uint64_t channel_key_of_posix_queue(int descriptor) {
  return key_of_file(descriptor, CHANNEL_OF_POSIX_QUEUE);
}

uint64_t channel_key_of_lock(int descriptor) { return key_of_file(descriptor, CHANNEL_OF_LOCKS); }

uint64_t channel_key_of_signals(void) { return key_of(0, CHANNEL_OF_SIGNALS); }
