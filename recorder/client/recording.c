/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include "dr_api.h"

#include "process_status.h"
#include "raw_system_call.h"
#include "unrecorded_children.h"

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

/* A new entry for the caller; false where there is no room for it. */
static bool add_caller(void) {
  struct control_area *area = recording.area;
  uint32_t number = __atomic_fetch_add(&area->processes, 1, __ATOMIC_SEQ_CST);
  if (number >= CONTROL_PROCESSES_MAX)
    return false;
  struct process_control *control = &area->process[number];
  control->parent = (int32_t)process_status(STATUS_PARENT);
  control->start_time = process_status(STATUS_START_TIME);
  __atomic_store_n(&control->process, process_id_of_caller(), __ATOMIC_RELEASE);
  recording.control = control;
  recording.process = control->process;
  return true;
}

struct process_control *recording_of_process(int32_t process) {
  struct control_area *area = recording.area;
  uint32_t count = __atomic_load_n(&area->processes, __ATOMIC_SEQ_CST);
  if (count > CONTROL_PROCESSES_MAX)
    count = CONTROL_PROCESSES_MAX;
  while (count-- > 0) {
    struct process_control *control = &area->process[count];
    if (__atomic_load_n(&control->process, __ATOMIC_ACQUIRE) == process && !control->is_sealed)
      return control;
  }
  return NULL;
}

/* The entry of the caller, which an image before this one has made, or its launcher. */
static bool find_caller(void) {
  struct process_control *control = recording_of_process(process_id_of_caller());
  uint64_t start_time = process_status(STATUS_START_TIME);
  if (control == NULL || (control->start_time != 0 && control->start_time != start_time))
    return false;
  control->start_time = start_time;
  recording.control = control;
  recording.process = control->process;
  return true;
}

bool recording_open(client_id_t client, const char *control_path) {
  remember_folder(dr_get_client_path(client));
  file_t file = dr_open_file(control_path, DR_FILE_READ | DR_FILE_WRITE_APPEND);
  if (file == INVALID_FILE)
    return false;
  size_t bytes = sizeof(struct control_area);
  struct control_area *area =
      dr_map_file(file, &bytes, 0, NULL, DR_MEMPROT_READ | DR_MEMPROT_WRITE, 0);
  dr_close_file(file);
  if (area == NULL)
    return false;
  bool is_ours = bytes >= sizeof(struct control_area) && area->magic == CONTROL_MAGIC;
  recording.area = is_ours ? area : NULL;
  bool is_recorded = is_ours && (find_caller() || (area->children && add_caller()));
  if (is_ours && !is_recorded && !area->children)
    unrecorded_child_runs(process_id_of_caller(), dr_get_application_name());
  if (!is_recorded || recording.control->stopped_reason != STOP_NONE) {
    dr_unmap_file(area, bytes);
    recording.area = NULL;
    return false;
  }
  recording.image = ++recording.control->images;
  return true;
}

bool recording_continue_in_child(void) {
  if (!recording.area->children || recording.is_stopped || !add_caller())
    return false;
  /* Its code begins with that of its parent. */
  recording.control->images = recording.image;
  return true;
}

bool recording_is_of_child(void) { return recording.control != &recording.area->process[0]; }

static void append(char *path, const char *text) {
  size_t length = strlen(path), added = strlen(text);
  if (length + added < RECORD_PATH_BYTES)
    memcpy(path + length, text, added + 1);
}

void recording_path(char path[RECORD_PATH_BYTES]) {
  const struct control_area *area = recording.area;
  path[0] = '\0';
  if (!recording_is_of_child()) {
    append(path, area->record_path);
    return;
  }
  char number[16];
  dr_snprintf(number, sizeof(number), ".%d", recording.process);
  append(path, area->child_prefix);
  append(path, number);
  append(path, area->child_suffix);
  append(path, PARTIAL_SUFFIX);
}

void recording_close(void) { dr_unmap_file(recording.area, sizeof(struct control_area)); }

void recording_stop(enum stop_reason reason) {
  uint32_t none = STOP_NONE;
  recording.is_stopped = true;
  __atomic_compare_exchange_n(&recording.control->stopped_reason, &none, (uint32_t)reason, false,
                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
