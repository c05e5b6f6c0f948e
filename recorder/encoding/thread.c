/* SPDX-License-Identifier: Apache-2.0 */
#include "thread.h"

#include "arena.h"
#include "baton_limits.h"
#include "fields.h"
#include "loaded_modules.h"
#include "memory_map.h"
#include "platform.h"
#include "process_image.h"
#include "raw_words.h"
#include "record_format.h"
#include "recording.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "synchronisation.h"
#include "thread_identity.h"

#include <string.h>

/* Small enough to stay in a second-level cache between its filling and its encoding. */
#define BUFFER_WORDS (128u * 1024)
#define BUFFER_BYTES (BUFFER_WORDS * sizeof(uint64_t))
#define GUARD_BYTES (EXECUTION_WORDS_MAX * sizeof(uint64_t)) /* whole pages */
/* Longer events are not written; nothing makes them. */
#define EVENT_WORDS_MAX 16384u

uint64_t thread_pointer(struct thread *thread) {
  if (thread->pointer == 0)
    thread->pointer = platform_thread_pointer(thread);
  return thread->pointer;
}

/* Where values are recorded, with what of it depends on other threads. */
const uint64_t *thread_encode(struct thread *thread, const uint64_t *from, const uint64_t *end) {
  const uint64_t *stop;
  if (!values_are_recorded)
    return encoder_consume(&thread->encoder, from, end);
  while ((stop = write_order_look(thread, end)) != end) {
    from = encoder_consume(&thread->encoder, from, stop);
    write_order_tell(thread);
  }
  return encoder_consume(&thread->encoder, from, end);
}

/* The caller moves what is left, and says so. */
static const uint64_t *encode_buffer(struct thread *thread, const uint64_t *end) {
  thread->encoder.reached = thread->buffer;
  thread->phase = THREAD_ENCODES;
  const uint64_t *kept = thread_encode(thread, thread->buffer, end);
  thread->phase = THREAD_MOVES;
  return kept;
}

bool thread_is_followed(const struct thread *thread) {
  return thread->is_recorded || (region_is_outside && thread->process == recording.process);
}

/* Outside of the region the position goes on by a word for each instruction. */
static size_t count_words(struct thread *thread) {
  ptrdiff_t words = *thread->position - thread->buffer;
  *thread->position = thread->buffer;
  if (thread->process == recording.process)
    region_of_interest_count((uint64_t)words);
  if (baton_has(thread)) {
    baton_moved(thread, -words, false);
    baton_charge(thread, (uint64_t)words);
  }
  return (size_t)words;
}

static size_t drain(struct thread *thread, const uint64_t *end) {
  uint64_t *position = *thread->position, *moved;
  if (!thread->is_recorded && region_is_outside)
    return count_words(thread);
  uint64_t *limit = position < thread->guard ? position : thread->guard;
  if (!thread->is_recorded) {
    moved = thread->buffer + EXECUTION_WORDS_MAX;
    if (position <= moved)
      return 0;
    *thread->position = moved;
    if (baton_has(thread))
      baton_moved(thread, moved - position, true);
    return (size_t)(position - moved);
  }
  /* Of a call that goes on it is not known yet what becomes of its inside. */
  if (thread->call_position != NULL) {
    if (limit - thread->call_position > CALL_WORDS_MAX) {
      call_path_shorten(thread, limit);
      limit -= position - *thread->position;
    }
    end = thread->call_position;
  }
  const uint64_t *consumed = end < limit ? end : limit;
  const uint64_t *kept = encode_buffer(thread, consumed);
  if (values_are_recorded)
    write_order_moved(thread, kept);
  memmove(thread->buffer, kept, (size_t)(limit - kept) * sizeof(uint64_t));
  if (thread->call_position != NULL)
    thread->call_position -= kept - thread->buffer;
  if (region_of_interest_look_in() == 0 && baton_has(thread))
    baton_look_at_once(thread);
  moved = *thread->position - (kept - thread->buffer);
  *thread->position = moved;
  thread->phase = THREAD_RUNS;
  if (baton_has(thread))
    baton_moved(thread, moved - position, false);
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
  require(words <= EVENT_WORDS_MAX, "an event is too long");
  if (*thread->position + words > thread->guard)
    thread_drain(thread);
  uint64_t *out = *thread->position;
  *out = marker;
  if (has_clock)
    out[1] = clock;
  if (field_bytes > 0)
    out[words - 1] = 0; /* Markers are compared word by word. */
  memcpy(out + 1 + has_clock, fields, field_bytes);
  *thread->position += words;
}

void thread_append(struct thread *thread, const uint64_t *words, size_t count) {
  if (!thread->is_recorded)
    return;
  if (*thread->position + count > thread->guard)
    thread_drain(thread);
  memcpy(*thread->position, words, count * sizeof(uint64_t));
  *thread->position += count;
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
  if (thread->call_position != NULL)
    call_path_drop(thread);
  encode_buffer(thread, *thread->position);
  trace_frame_write(&thread->encoder.frame);
  *thread->position = thread->buffer;
  thread->phase = THREAD_RUNS;
  write_order_moved(thread, thread->order.walked);
  if (thread->call_position != NULL)
    thread->call_position = thread->buffer;
}

static void find_stack(struct thread *thread, uint64_t stack_pointer) {
  memory_map_stack(stack_pointer, &thread->stack_low, &thread->stack_high);
  selected_memory_is_stack(thread->stack_low, thread->stack_high);
}

static void send_start(struct thread *thread) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, baton_is_passed ? thread->id : platform_kernel_thread_id(thread));
  fields_number(&fields, thread->stack_low);
  fields_number(&fields, thread->stack_high);
  fields_send_clocked(&fields, thread, EVENT_THREAD_START, clock_advance());
  thread->is_known = true;
}

static bool has_encoder(const struct thread *thread) {
  return thread->encoder.predictor.nothing != NULL;
}

static void start_encoder(struct thread *thread, uint32_t sequence, uint64_t position) {
  encoder_init(&thread->encoder, thread->id, sequence, position);
  thread->encoder.values = values_are_recorded ? &thread->values : NULL;
}

/* The first thread of an image that an exec started: the thread that called it goes on. */
static void continue_after_exec(struct thread *thread) {
  struct process_control *control = recording.control;
  char program[CONTROL_PATH_BYTES];
  platform_program_path(program, sizeof(program));
  struct fields fields;
  thread->id = control->exec_thread;
  start_encoder(thread, control->exec_sequence, control->exec_position);
  control->exec_pending = 0;
  control->live_threads = 1;
  fields_begin(&fields);
  fields_text(&fields, program);
  fields_send_clocked(&fields, thread, EVENT_EXEC, clock_advance());
}

void thread_is_recorded_from_here(struct thread *thread) {
  thread->is_recorded = true;
  recording.control->live_threads++;
  if (!thread->is_known) {
    start_encoder(thread, 0, 0);
    send_start(thread);
  }
  synchronisation_recorded_from_here(thread);
}

/* Whether it is the first thread of the program, or of an image of it. */
static bool start_recording(struct thread *thread) {
  static bool has_first_thread;
  bool is_first = !__atomic_test_and_set(&has_first_thread, __ATOMIC_SEQ_CST);
  /* Of the first thread an engine may not know the state yet. */
  uint64_t stack_pointer =
      is_first ? platform_first_stack_pointer() : platform_stack_pointer(thread);
  find_stack(thread, stack_pointer);
  if (!thread->is_recorded) {
    if (process_image_is_later())
      recording.control->exec_pending = recording.control->live_threads = 0;
    thread->id = thread_identity_starts(platform_kernel_thread_id(thread));
    return is_first;
  }
  if (is_first && process_image_is_later()) {
    continue_after_exec(thread);
  } else {
    thread->id = thread_identity_starts(platform_kernel_thread_id(thread));
    __atomic_add_fetch(&recording.control->live_threads, 1, __ATOMIC_SEQ_CST);
    start_encoder(thread, 0, 0);
    send_start(thread);
  }
  if (is_first)
    memory_map_send_all(thread);
  return is_first;
}

void thread_continue_in_child(struct thread *thread) {
  uint64_t stack_pointer = platform_stack_pointer(thread);
  if (has_encoder(thread))
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
  thread->is_recorded = !recording.is_stopped && !region_is_outside;
  thread->is_known = false;
  if (baton_has(thread))
    baton_continue_in_child(thread);
  find_stack(thread, stack_pointer);
  thread->id = thread_identity_starts(platform_kernel_thread_id(thread));
  if (region_is_outside)
    return;
  recording.control->live_threads = 1;
  start_encoder(thread, 0, 0);
  send_start(thread);
  memory_map_send_all(thread);
  /* Its mapping has just been told of as any other. */
  find_stack(thread, stack_pointer);
  loaded_modules_send_all(thread);
}

bool thread_begin(struct thread *thread, void *engine_thread, uint64_t **position,
                  struct baton_limits *limits) {
  memset(thread, 0, sizeof(*thread));
  thread->engine_thread = engine_thread;
  thread->position = position;
  thread->limits = limits;
  thread->buffer = pages_allocate(BUFFER_BYTES + GUARD_BYTES);
  thread->guard = thread->buffer + BUFFER_WORDS;
  platform_guard_pages(thread->guard, GUARD_BYTES);
  *thread->position = thread->buffer;
  if (values_are_recorded)
    value_queue_init(&thread->values);
  write_order_init(thread);
  thread->process = process_id_of_caller();
  bool is_ours = !recording.is_stopped && thread->process == recording.process;
  thread->is_recorded = is_ours && !region_is_outside;
  if (baton_is_passed)
    baton_set_no_limits(thread);
  if (baton_is_passed && thread->process == recording.process)
    baton_join(thread);
  return is_ours && start_recording(thread);
}

void thread_end(struct thread *thread) {
  if (!thread->is_recorded && thread_is_followed(thread))
    thread_drain(thread); /* and counts what it did */
  /* A forked child is told of the end of threads that it never had. One that waited for its first
   * turn when the process ended has done nothing. */
  if (thread->is_recorded && has_encoder(thread) && thread->process == recording.process &&
      process_id_of_caller() == recording.process) {
    thread_event_clocked(thread, EVENT_THREAD_EXIT, clock_advance(), NULL, 0);
    thread_flush(thread);
    __atomic_sub_fetch(&recording.control->live_threads, 1, __ATOMIC_SEQ_CST);
  }
  if (has_encoder(thread))
    encoder_free(&thread->encoder);
  value_queue_free(&thread->values);
  write_order_free(thread);
  if (thread->path != NULL)
    pages_free(thread->path, CALL_WORDS_MAX * sizeof(uint64_t));
  pages_free(thread->buffer, BUFFER_BYTES + GUARD_BYTES);
  if (baton_has(thread) && platform_is_caller(thread))
    baton_leave(thread);
}
