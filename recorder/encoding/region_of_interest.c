/* SPDX-License-Identifier: Apache-2.0 */
#include "region_of_interest.h"

#include "baton.h"
#include "fields.h"
#include "loaded_modules.h"
#include "memory_map.h"
#include "record_format.h"
#include "recording.h"

#include <string.h>

enum roi_boundary { ROI_BEGINS = 1, ROI_ENDS = 2 };

bool region_is_outside;

static struct {
  bool is_alone;
  bool is_over; /* between counts: what comes next is not recorded */
  uint64_t head_clock;
  bool has_functions;
  char start[CONTROL_OPTION_BYTES], stop[CONTROL_OPTION_BYTES];
  uint64_t begin_count, end_count;
  uint64_t next_count; /* UINT64_MAX: none */
  uint32_t is_inside;
} region = {.next_count = UINT64_MAX};

static bool parse_count(const char *text, uint64_t *count) {
  *count = 0;
  if (*text == '\0')
    return false;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9')
      return false;
    *count = *count * 10 + (uint64_t)(*text - '0');
  }
  return true;
}

static uint64_t instructions(void) {
  return __atomic_load_n(&recording.control->instructions, __ATOMIC_RELAXED);
}

/* The launcher has checked that it is START:STOP. */
void region_of_interest_init(void) {
  const char *text = recording.area->roi;
  size_t length = strlen(text), colon = 0;
  if (length == 0)
    return;
  while (text[colon] != ':')
    colon++;
  memcpy(region.start, text, colon);
  memcpy(region.stop, text + colon + 1, length - colon);
  region.has_functions = !parse_count(region.start, &region.begin_count) ||
                         !parse_count(region.stop, &region.end_count);
  /* An image before this one may have been there. */
  for (uint64_t every = recording.area->every; every > 0 && instructions() >= region.end_count;) {
    region.begin_count += every;
    region.end_count += every;
  }
  if (!region.has_functions && instructions() < region.end_count)
    region.next_count = instructions() < region.begin_count ? region.begin_count : region.end_count;
  region.is_alone = region_is_outside = recording.area->warm != CONTROL_WARM_ALL;
  if (region_of_interest_look_in() == 0)
    region_is_outside = false;
}

static uint64_t left_up_to(uint64_t count) {
  return count > instructions() ? count - instructions() : 0;
}

uint64_t region_of_interest_look_in(void) {
  uint64_t warm = recording.area->warm, from = region.begin_count;
  if (region.is_over)
    return 0;
  if (!region.is_alone || region.has_functions || region.next_count == UINT64_MAX)
    return UINT64_MAX;
  if (region_is_outside)
    return left_up_to(from - (warm < from ? warm : from));
  /* What has been executed since is known when it is encoded. */
  return left_up_to(region.end_count) / 4 + 1;
}

void region_of_interest_count(uint64_t count) {
  __atomic_add_fetch(&recording.control->instructions, count, __ATOMIC_RELAXED);
}

uint64_t region_of_interest_clock(uint64_t clock) { return clock < region.head_clock ? 0 : clock; }

/* The threads as they stand, as if the oldest had made the others. */
static void open_record(void) {
  struct thread *oldest = baton_first()->thread;
  for (struct baton_member *member = baton_first(); member != NULL; member = member->next)
    thread_drain(member->thread);
  region_is_outside = false;
  region.head_clock = clock_advance();
  thread_is_recorded_from_here(oldest);
  memory_map_send_all(oldest);
  loaded_modules_send_all(oldest);
  for (struct baton_member *member = baton_first(); member != NULL; member = member->next) {
    struct thread *other = member->thread;
    if (other == oldest)
      continue;
    if (!other->is_known) {
      struct fields fields;
      fields_begin(&fields);
      fields_number(&fields, other->id);
      fields_send_clocked(&fields, oldest, EVENT_THREAD_CREATE, clock_advance());
    }
    thread_is_recorded_from_here(other);
  }
}

static void close_record(void) {
  for (struct baton_member *member = baton_first(); member != NULL; member = member->next) {
    thread_flush(member->thread);
    member->thread->is_recorded = false;
    member->thread->call_position = NULL;
  }
  region.is_over = false;
  recording.control->live_threads = 0;
  region_is_outside = true;
}

void region_of_interest_look(struct thread *thread) {
  if (!region.is_alone || region.has_functions)
    return;
  thread_drain(thread);
  if (region.is_over)
    close_record();
  else if (region_is_outside && region_of_interest_look_in() == 0)
    open_record();
}

static void send(struct thread *thread, enum roi_boundary boundary);

void region_of_interest_continue_in_child(struct thread *thread) {
  if (recording.area->roi[0] == '\0')
    return;
  if (region.has_functions) {
    if (region.is_inside && thread->is_recorded)
      send(thread, ROI_BEGINS);
  } else {
    region.next_count = region.begin_count;
  }
}

bool region_of_interest_has_functions(void) { return region.has_functions; }

uint64_t region_of_interest_boundary(void) {
  return __atomic_load_n(&region.next_count, __ATOMIC_RELAXED);
}

static void count_boundary(enum roi_boundary boundary) {
  __atomic_add_fetch(&recording.control->roi_boundaries, 1, __ATOMIC_SEQ_CST);
}

uint8_t region_of_interest_pass(uint64_t boundary) {
  bool begins = boundary == region.begin_count;
  uint64_t every = recording.area->every;
  uint64_t next = begins ? region.end_count : every > 0 ? region.begin_count + every : UINT64_MAX;
  if (!__atomic_compare_exchange_n(&region.next_count, &boundary, next, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_SEQ_CST))
    return 0;
  enum roi_boundary passed = begins ? ROI_BEGINS : ROI_ENDS;
  if (!begins) {
    region.begin_count += every;
    region.end_count += every;
  }
  region.is_over = region.is_alone && passed == ROI_ENDS;
  count_boundary(passed);
  return (uint8_t)passed;
}

static void send(struct thread *thread, enum roi_boundary boundary) {
  uint8_t field = (uint8_t)boundary;
  count_boundary(boundary);
  thread_event(thread, EVENT_ROI, &field, 1);
}

/* The region is the process's: the first thread to get there begins or ends it. */
bool region_of_interest_begin(struct thread *thread) {
  bool opens = region_is_outside && thread->process == recording.process;
  if (!thread->is_recorded && !opens)
    return false;
  if (__atomic_exchange_n(&region.is_inside, 1, __ATOMIC_SEQ_CST) != 0)
    return false;
  if (opens)
    open_record();
  send(thread, ROI_BEGINS);
  return true;
}

void region_of_interest_end(struct thread *thread) {
  if (!thread->is_recorded || __atomic_exchange_n(&region.is_inside, 0, __ATOMIC_SEQ_CST) != 1)
    return;
  send(thread, ROI_ENDS);
  if (region.is_alone)
    close_record();
}

bool region_of_interest_is_of_call(void) {
  return region.has_functions && strcmp(region.start, region.stop) == 0;
}

bool region_of_interest_begins_at(const char *function) {
  return region.has_functions && strcmp(function, region.start) == 0;
}

bool region_of_interest_ends_at(const char *function) {
  return region.has_functions && strcmp(function, region.stop) == 0;
}
