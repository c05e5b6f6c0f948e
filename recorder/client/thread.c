/* SPDX-License-Identifier: Apache-2.0 */
#include "thread.h"

#include "dr_api.h"

#include "drmgr.h"

#include "arena.h"
#include "environment.h"
#include "fields.h"
#include "initial_stack.h"
#include "interruptions.h"
#include "memory_map.h"
#include "process_image.h"
#include "raw_words.h"
#include "record_format.h"
#include "recording.h"
#include "selected_memory.h"
#include "thread_identity.h"

#include <string.h>

/* Small enough to stay in a second-level cache between its filling and its encoding. */
#define BUFFER_WORDS (128u * 1024)
#define BUFFER_BYTES (BUFFER_WORDS * sizeof(uint64_t))
#define GUARD_BYTES (EXECUTION_WORDS_MAX * sizeof(uint64_t)) /* whole pages */
/* Longer events are not written; nothing makes them. */
#define EVENT_WORDS_MAX 16384u

reg_id_t position_tls_segment;
uint position_tls_offset;
static int field_index;

struct thread *thread_of(void *drcontext) { return drmgr_get_tls_field(drcontext, field_index); }

static size_t drain(struct thread *thread, const uint64_t *end) {
  uint64_t *position = *thread->position, *moved;
  uint64_t *limit = position < thread->guard ? position : thread->guard;
  if (!thread->is_recorded) {
    moved = thread->buffer + EXECUTION_WORDS_MAX;
    if (position <= moved)
      return 0;
    *thread->position = moved;
    return (size_t)(position - moved);
  }
  const uint64_t *kept, *kept_end, *unfinished;
  if (thread->call_position != NULL) {
    kept_end = thread->call_position;
    if (values_are_recorded)
      write_order_look(thread, kept_end);
    kept = encoder_consume(&thread->encoder, thread->buffer, kept_end);
    unfinished = raw_words_last_start(kept_end, limit);
  } else {
    if (values_are_recorded)
      write_order_look(thread, end < limit ? end : limit);
    kept = encoder_consume(&thread->encoder, thread->buffer, end < limit ? end : limit);
    kept_end = unfinished = limit;
  }
  size_t kept_words = (size_t)(kept_end - kept), rest_words = (size_t)(limit - unfinished);
  memmove(thread->buffer, kept, kept_words * sizeof(uint64_t));
  if (values_are_recorded)
    write_order_moved(thread, kept);
  if (thread->call_position != NULL)
    thread->call_position = thread->buffer + kept_words;
  memmove(thread->buffer + kept_words, unfinished, rest_words * sizeof(uint64_t));
  moved = thread->buffer + kept_words + (position - unfinished);
  *thread->position = moved;
  if (recording.is_stopped)
    thread->is_recorded = false;
  return (size_t)(position - moved);
}

size_t thread_drain(struct thread *thread) { return drain(thread, thread->guard); }

size_t thread_drain_before(struct thread *thread, const uint64_t *end) {
  return drain(thread, end);
}

static void append_marker(struct thread *thread, uint8_t type, bool has_clock, uint64_t clock,
                          const uint8_t *fields, size_t field_bytes) {
  if (!thread->is_recorded)
    return;
  uint64_t marker = marker_word(type, has_clock, (uint32_t)field_bytes);
  size_t words = marker_words(marker);
  DR_ASSERT_MSG(words <= EVENT_WORDS_MAX, "an event is too long");
  if (thread->call_position != NULL)
    *thread->position = thread->call_position;
  if (*thread->position + words > thread->guard)
    thread_drain(thread);
  uint64_t *out = *thread->position;
  *out = marker;
  if (has_clock)
    out[1] = clock;
  memcpy(out + 1 + has_clock, fields, field_bytes);
  *thread->position += words;
  if (thread->call_position != NULL)
    thread->call_position = *thread->position;
}

void thread_event(struct thread *thread, uint8_t type, const uint8_t *fields, size_t field_bytes) {
  append_marker(thread, type, false, 0, fields, field_bytes);
}

void thread_event_clocked(struct thread *thread, uint8_t type, uint64_t clock,
                          const uint8_t *fields, size_t field_bytes) {
  append_marker(thread, type, true, clock, fields, field_bytes);
}

void thread_flush(struct thread *thread) {
  if (!thread->is_recorded)
    return;
  uint64_t *end = thread->call_position != NULL ? thread->call_position : *thread->position;
  if (values_are_recorded)
    write_order_look(thread, end);
  encoder_consume_all(&thread->encoder, thread->buffer, end);
  trace_frame_write(&thread->encoder.frame);
  *thread->position = thread->buffer;
  write_order_moved(thread, thread->order.walked);
  if (thread->call_position != NULL)
    thread->call_position = thread->buffer;
}

void thread_flush_stopped(struct thread *thread) {
  if (thread->stopped_at == 0) {
    thread_flush(thread);
    return;
  }
  const uint64_t *running = raw_words_last_record(thread->buffer, *thread->position);
  thread_drain_before(thread, running != NULL ? running : thread->buffer);
  trace_frame_write(&thread->encoder.frame);
  thread->stopped_at = 0;
}

static void send_start(struct thread *thread, uint64_t stack_pointer) {
  struct fields fields;
  uint64_t low, high;
  memory_map_stack(stack_pointer, &low, &high);
  selected_memory_is_stack(low, high);
  fields_begin(&fields);
  fields_number(&fields, (uint64_t)dr_get_thread_id(thread->drcontext));
  fields_number(&fields, low);
  fields_number(&fields, high);
  fields_send_clocked(&fields, thread, EVENT_THREAD_START, clock_advance());
}

static void start_encoder(struct thread *thread, uint32_t sequence, uint64_t position) {
  encoder_init(&thread->encoder, thread->id, sequence, position);
  thread->encoder.values = values_are_recorded ? &thread->values : NULL;
}

/* The first thread of an image that an exec started: the thread that called it goes on. */
static void continue_after_exec(struct thread *thread) {
  struct process_control *control = recording.control;
  module_data_t *program = dr_get_main_module();
  struct fields fields;
  thread->id = control->exec_thread;
  start_encoder(thread, control->exec_sequence, control->exec_position);
  control->exec_pending = 0;
  control->live_threads = 1;
  fields_begin(&fields);
  fields_text(&fields, program == NULL || program->full_path == NULL ? "" : program->full_path);
  fields_send_clocked(&fields, thread, EVENT_EXEC, clock_advance());
  if (program != NULL)
    dr_free_module_data(program);
}

static void start_recording(struct thread *thread) {
  static bool has_first_thread;
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_CONTROL};
  bool is_first = !__atomic_test_and_set(&has_first_thread, __ATOMIC_SEQ_CST);
  /* Of the first thread the engine does not know the state yet. */
  dr_get_mcontext(thread->drcontext, &context);
  uint64_t stack_pointer = is_first ? initial_stack_pointer() : context.xsp;
  if (is_first && process_image_is_later()) {
    continue_after_exec(thread);
  } else {
    thread->id = thread_identity_starts((uint64_t)dr_get_thread_id(thread->drcontext));
    __atomic_add_fetch(&recording.control->live_threads, 1, __ATOMIC_SEQ_CST);
    start_encoder(thread, 0, 0);
    send_start(thread, stack_pointer);
  }
  if (is_first) {
    memory_map_send_all(thread);
    environment_clean();
  }
}

void thread_continue_in_child(struct thread *thread) {
  uint64_t low, high;
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_CONTROL};
  if (thread->encoder.predictor.nothing != NULL)
    encoder_free(&thread->encoder);
  if (values_are_recorded) {
    value_queue_free(&thread->values);
    value_queue_init(&thread->values);
    write_order_continue_in_child(thread);
  }
  *thread->position = thread->buffer;
  thread->call_position = NULL;
  thread->call_depth = thread->call_writes = 0;
  thread->process = recording.process;
  thread->is_recorded = !recording.is_stopped;
  thread->id = thread_identity_starts((uint64_t)dr_get_thread_id(thread->drcontext));
  recording.control->live_threads = 1;
  start_encoder(thread, 0, 0);
  dr_get_mcontext(thread->drcontext, &context);
  send_start(thread, context.xsp);
  memory_map_send_all(thread);
  /* Its mapping has just been told of as any other. */
  memory_map_stack(context.xsp, &low, &high);
  selected_memory_is_stack(low, high);
  memory_map_send_modules(thread);
}

static void on_thread_start(void *drcontext) {
  struct thread *thread = dr_thread_alloc(drcontext, sizeof(*thread));
  memset(thread, 0, sizeof(*thread));
  drmgr_set_tls_field(drcontext, field_index, thread);
  thread->drcontext = drcontext;
  byte *tls = dr_get_dr_segment_base(position_tls_segment);
  thread->position = (uint64_t **)(tls + position_tls_offset);
  thread->buffer = pages_allocate(BUFFER_BYTES + GUARD_BYTES);
  thread->guard = thread->buffer + BUFFER_WORDS;
  dr_memory_protect(thread->guard, GUARD_BYTES, DR_MEMPROT_NONE);
  *thread->position = thread->buffer;
  if (values_are_recorded)
    value_queue_init(&thread->values);
  write_order_init(thread);
  thread->process = process_id_of_caller();
  thread->is_recorded = !recording.is_stopped && thread->process == recording.process;
  if (thread->is_recorded)
    start_recording(thread);
}

static void on_thread_exit(void *drcontext) {
  struct thread *thread = thread_of(drcontext);
  /* A forked child is told of the end of threads that it never had. */
  if (thread->is_recorded && thread->process == recording.process &&
      process_id_of_caller() == recording.process) {
    /* Where the process ends, another thread ends this one. */
    if (drcontext != dr_get_current_drcontext() && thread->stopped_at != 0)
      interrupt_block(thread, thread->stopped_at);
    thread_event_clocked(thread, EVENT_THREAD_EXIT, clock_advance(), NULL, 0);
    thread_flush(thread);
    __atomic_sub_fetch(&recording.control->live_threads, 1, __ATOMIC_SEQ_CST);
  }
  if (thread->encoder.predictor.nothing != NULL)
    encoder_free(&thread->encoder);
  value_queue_free(&thread->values);
  write_order_free(thread);
  pages_free(thread->buffer, BUFFER_BYTES + GUARD_BYTES);
  dr_thread_free(drcontext, thread, sizeof(*thread));
}

void threads_init(void) {
  field_index = drmgr_register_tls_field();
  dr_raw_tls_calloc(&position_tls_segment, &position_tls_offset, 1, 0);
  drmgr_register_thread_init_event(on_thread_start);
  drmgr_register_thread_exit_event(on_thread_exit);
}

void threads_exit(void) {
  drmgr_unregister_thread_init_event(on_thread_start);
  drmgr_unregister_thread_exit_event(on_thread_exit);
  dr_raw_tls_cfree(position_tls_offset, 1);
  drmgr_unregister_tls_field(field_index);
}
