/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include "decimal.h"
#include "platform.h"
#include "process_status.h"
#include "raw_system_call.h"
#include "unrecorded_children.h"

#include <string.h>
#include <sys/syscall.h>

struct recording recording;

int32_t process_id_of_caller(void) { return (int32_t)raw_system_call(SYS_getpid, 0, 0, 0); }

static void remember_folder(const char *library_path) {
  size_t length = strlen(library_path);
  while (length > 0 && library_path[length - 1] != '/')
    length--;
  if (length == 0 || length > sizeof(recording.library_folder))
    return;
  memcpy(recording.library_folder, library_path, length - 1);
  recording.library_folder[length - 1] = '\0';
}

bool recording_has_file(const char *path) {
  size_t folder = strlen(recording.library_folder);
  return strncmp(path, recording.library_folder, folder) == 0 && path[folder] == '/';
}

static void is_of(struct process_control *control) {
  struct control_area *area = recording.area;
  recording.control = control;
  recording.process = control->process;
  recording.tree = area->has_tree ? &area->tree : NULL;
  recording.clock = area->has_tree ? &area->clock : &control->clock;
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
  is_of(control);
  return true;
}

/* The latest with that kernel id. */
static struct process_control *find(int32_t process, bool may_be_sealed) {
  struct control_area *area = recording.area;
  uint32_t count = __atomic_load_n(&area->processes, __ATOMIC_SEQ_CST);
  if (count > CONTROL_PROCESSES_MAX)
    count = CONTROL_PROCESSES_MAX;
  while (count-- > 0) {
    struct process_control *control = &area->process[count];
    if (__atomic_load_n(&control->process, __ATOMIC_ACQUIRE) == process &&
        (may_be_sealed || !control->is_sealed))
      return control;
  }
  return NULL;
}

struct process_control *recording_of_process(int32_t process) { return find(process, false); }

struct process_control *recording_of_ended(int32_t process) { return find(process, true); }

/* The entry of the caller, which an image before this one has made, or its launcher. */
static bool find_caller(void) {
  struct process_control *control = recording_of_process(process_id_of_caller());
  uint64_t start_time = process_status(STATUS_START_TIME);
  if (control == NULL || (control->start_time != 0 && control->start_time != start_time))
    return false;
  control->start_time = start_time;
  is_of(control);
  return true;
}

bool recording_open(const char *library_path, const char *control_path) {
  remember_folder(library_path);
  size_t bytes = sizeof(struct control_area);
  struct control_area *area = platform_map_file(control_path, &bytes);
  if (area == NULL)
    return false;
  bool is_ours = bytes >= sizeof(struct control_area) && area->magic == CONTROL_MAGIC;
  recording.area = is_ours ? area : NULL;
  bool is_recorded = is_ours && (find_caller() || (area->children && add_caller()));
  if (is_ours)
    program_begins();
  if (is_ours && !is_recorded && !area->children)
    unrecorded_child_executes(process_id_of_caller(), platform_program_name());
  if (!is_recorded || recording.control->stopped_reason != STOP_NONE) {
    platform_unmap_file(area, bytes);
    recording.area = NULL;
    return false;
  }
  recording.image = ++recording.control->images;
  return true;
}

bool recording_continue_in_child(void) {
  int32_t parent = recording_number(recording.control);
  if (!recording.area->children || recording.is_stopped || !add_caller())
    return false;
  recording.control->forked_by = (uint32_t)parent + 1;
  program_begins();
  /* Its code begins with that of its parent. */
  recording.control->images = recording.image;
  return true;
}

int32_t recording_number(const struct process_control *control) {
  return control == NULL ? -1 : (int32_t)(control - recording.area->process);
}

bool recording_is_of_child(void) { return recording_number(recording.control) != 0; }

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
  char number[1 + DECIMAL_BYTES_MAX] = ".";
  decimal_write(number + 1, (uint32_t)recording_number(recording.control));
  append(path, area->child_prefix);
  append(path, number);
  append(path, area->child_suffix);
  append(path, PARTIAL_SUFFIX);
}

void recording_close(void) { platform_unmap_file(recording.area, sizeof(struct control_area)); }

void recording_stop(enum stop_reason reason) {
  uint32_t none = STOP_NONE;
  recording.is_stopped = true;
  __atomic_compare_exchange_n(&recording.control->stopped_reason, &none, (uint32_t)reason, false,
                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
