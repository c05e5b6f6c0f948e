/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include "dr_api.h"

#include <sys/syscall.h>

struct recording recording;

int32_t process_id_of_caller(void) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(SYS_getpid) : "rcx", "r11", "memory");
  return (int32_t)result;
}

bool recording_open(const char *control_path) {
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
