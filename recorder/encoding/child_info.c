/* SPDX-License-Identifier: Apache-2.0 */
#include "child_info.h"

#include "frame.h"
#include "initial_stack.h"
#include "platform.h"
#include "record_info.h"
#include "recording.h"

/* NULL where an option was not given. */
static const char *given(const char *option) { return option[0] == '\0' ? NULL : option; }

/* That may have ended since. */
static int32_t parent(void) {
  const struct process_control *control = recording.control;
  return control->forked_by > 0 ? (int32_t)control->forked_by - 1
                                : recording_number(recording_of_process(control->parent));
}

void child_info_append(void) {
  static const char *const no_arguments[] = {NULL};
  const uint64_t *stack = (const uint64_t *)(uintptr_t)initial_stack_pointer();
  const struct control_area *area = recording.area;
  char program[CONTROL_PATH_BYTES];
  platform_program_path(program, sizeof(program));
  struct info info = {.isa = area->isa,
                      .engine = area->engine,
                      .program = program,
                      .arguments = stack == NULL ? no_arguments
                                                 : (const char *const *)(uintptr_t)(stack + 1),
                      .page_size = platform_page_bytes(),
                      .has_values = area->values != 0,
                      .pm = given(area->pm_selector),
                      .roi = given(area->roi),
                      .warm = area->warm,
                      .process = recording_number(recording.control),
                      .parent = parent()};
  size_t bytes = info_text(NULL, 0, &info);
  struct frame_buffer *buffer = frame_buffer_take(bytes);
  buffer->payload_bytes = (uint32_t)info_text((char *)buffer->payload, bytes, &info);
  struct frame_description frame = {.kind = FRAME_INFO};
  frame_append(buffer, &frame);
  frame_buffer_give_back(buffer);
}
