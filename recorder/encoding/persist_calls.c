/* SPDX-License-Identifier: Apache-2.0 */
#include "persist_calls.h"

#include "fields.h"
#include "mapped_files.h"
#include "raw_system_call.h"
#include "record_format.h"
#include "recording.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum persist_kind { PERSIST_MSYNC = 1, PERSIST_FSYNC, PERSIST_FDATASYNC, PERSIST_TRUNCATE };

struct persist {
  struct thread *thread;
  enum persist_kind kind;
};

static void send(const struct persist *persist, uint64_t start, uint64_t length) {
  struct fields fields;
  fields_begin(&fields);
  fields_byte(&fields, (uint8_t)persist->kind);
  fields_number(&fields, start);
  fields_number(&fields, length);
  fields_send_clocked(&fields, persist->thread, EVENT_PERSIST_CALL, clock_advance());
}

static void send_mapping(const struct file_mapping *mapping, void *user_data) {
  send(user_data, mapping->start, mapping->end - mapping->start);
}

static void send_mappings_of(struct persist *persist, int descriptor) {
  mapped_files_each(descriptor, send_mapping, persist);
}

static void send_mappings_of_path(struct persist *persist, uintptr_t path) {
  long descriptor = raw_system_call(SYS_open, path, O_PATH | O_CLOEXEC, 0);
  if (descriptor < 0)
    return;
  send_mappings_of(persist, (int)descriptor);
  raw_system_call(SYS_close, (uintptr_t)descriptor, 0, 0);
}

void persist_call_after(struct thread *thread, const struct system_call *call, int64_t result) {
  struct persist persist = {.thread = thread};
  if (result != 0)
    return;
  switch (call->x86_64) {
  case SYS_msync:
    // MS_ASYNC only begins to write back.
    if ((call->argument[2] & MS_SYNC) == 0)
      break;
    persist.kind = PERSIST_MSYNC;
    send(&persist, call->argument[0], call->argument[1]);
    break;
  case SYS_fsync:
    persist.kind = PERSIST_FSYNC;
    send_mappings_of(&persist, (int)call->argument[0]);
    break;
  case SYS_fdatasync:
    persist.kind = PERSIST_FDATASYNC;
    send_mappings_of(&persist, (int)call->argument[0]);
    break;
  case SYS_ftruncate:
    persist.kind = PERSIST_TRUNCATE;
    send_mappings_of(&persist, (int)call->argument[0]);
    break;
  case SYS_truncate:
    persist.kind = PERSIST_TRUNCATE;
    send_mappings_of_path(&persist, call->argument[0]);
    break;
  default:
    break;
  }
}
