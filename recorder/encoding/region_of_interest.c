/* SPDX-License-Identifier: Apache-2.0 */
#include "region_of_interest.h"

#include "record_format.h"
#include "recording.h"
#include "thread.h"

#include <string.h>

enum roi_boundary { ROI_BEGINS = 1, ROI_ENDS = 2 };

static struct {
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
  if (!region.has_functions)
    region.next_count = region.begin_count;
}

static void send(struct thread *thread, enum roi_boundary boundary);

void region_of_interest_continue_in_child(struct thread *thread) {
  if (recording.area->roi[0] == '\0')
    return;
  if (region.has_functions) {
    if (region.is_inside)
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
  uint64_t next = boundary == region.begin_count ? region.end_count : UINT64_MAX;
  if (!__atomic_compare_exchange_n(&region.next_count, &boundary, next, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_SEQ_CST))
    return 0;
  enum roi_boundary passed = next == UINT64_MAX ? ROI_ENDS : ROI_BEGINS;
  count_boundary(passed);
  return (uint8_t)passed;
}

static void send(struct thread *thread, enum roi_boundary boundary) {
  uint8_t field = (uint8_t)boundary;
  count_boundary(boundary);
  thread_event(thread, EVENT_ROI, &field, 1);
}

/* The region is the process's: the first thread to get there begins or ends it. */
void region_of_interest_begin(struct thread *thread) {
  if (thread->is_recorded && __atomic_exchange_n(&region.is_inside, 1, __ATOMIC_SEQ_CST) == 0)
    send(thread, ROI_BEGINS);
}

void region_of_interest_end(struct thread *thread) {
  if (thread->is_recorded && __atomic_exchange_n(&region.is_inside, 0, __ATOMIC_SEQ_CST) == 1)
    send(thread, ROI_ENDS);
}

bool region_of_interest_begins_at(const char *function) {
  return region.has_functions && strcmp(function, region.start) == 0;
}

bool region_of_interest_ends_at(const char *function) {
  return region.has_functions && strcmp(function, region.stop) == 0;
}
