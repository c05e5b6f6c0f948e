/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include "dr_api.h"

#include "raw_system_call.h"

#include <string.h>
#include <sys/syscall.h>

struct recording recording;

int32_t process_id_of_caller(void) { return (int32_t)raw_system_call(SYS_getpid, 0, 0, 0); }

static void remember_folder(const char *client_path) {
  size_t length = strlen(client_path);
  while (length > 0 && client_path[length - 1] != '/')
    length--;
  if (length == 0 || length > sizeof(recording.library_folder))
    return;
  memcpy(recording.library_folder, client_path, length - 1);
  recording.library_folder[length - 1] = '\0';
}

bool recording_open(client_id_t client, const char *control_path) {
  remember_folder(dr_get_client_path(client));
  file_t file = dr_open_file(control_path, DR_FILE_READ | DR_FILE_WRITE_APPEND);
  if (file == INVALID_FILE)
    return false;
  size_t bytes = sizeof(struct control_area);
  struct control_area *control =
      dr_map_file(file, &bytes, 0, NULL, DR_MEMPROT_READ | DR_MEMPROT_WRITE, 0);
  dr_close_file(file);
  if (control == NULL)
    return false;
  recording.process = process_id_of_caller();
  if (bytes < sizeof(struct control_area) || control->magic != CONTROL_MAGIC ||
      control->process != recording.process || control->stopped_reason != STOP_NONE) {
    dr_unmap_file(control, bytes);
    return false;
  }
  recording.control = control;
  recording.image = ++control->images;
  return true;
}

void recording_close(void) { dr_unmap_file(recording.control, sizeof(struct control_area)); }

void recording_stop(enum stop_reason reason) {
  uint32_t none = STOP_NONE;
  recording.is_stopped = true;
  __atomic_compare_exchange_n(&recording.control->stopped_reason, &none, (uint32_t)reason, false,
                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
