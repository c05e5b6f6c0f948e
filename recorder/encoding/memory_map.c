/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_map.h"

#include "arena.h"
#include "fields.h"
#include "file_data.h"
#include "kernel_maps.h"
#include "kernel_writes.h"
#include "mapped_files.h"
#include "platform.h"
#include "raw_system_call.h"
#include "record_format.h"
#include "recording.h"
#include "selected_memory.h"
#include "shared_mappings.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Where the limit is none, or so large that nobody means it. */
#define STACK_BYTES_DEFAULT (8u << 20)
#define STACK_BYTES_CONSIDERED_MAX (1u << 30)

static void send_mapping(struct thread *thread, uint64_t start, uint64_t length, uint8_t protection,
                         uint8_t kind, uint64_t offset, const char *name) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, start);
  fields_number(&fields, length);
  fields_byte(&fields, protection);
  fields_byte(&fields, kind);
  fields_number(&fields, offset);
  fields_text(&fields, name);
  fields_send_clocked(&fields, thread, EVENT_MAP, clock_advance());
  mapped_files_forget(start, length);
  selected_memory_mapped(start, length, kind, name);
}

void memory_map_send_unmap(struct thread *thread, uint64_t clock, uint64_t start, uint64_t length) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, start);
  fields_number(&fields, length);
  fields_send_clocked(&fields, thread, EVENT_UNMAP, clock);
  mapped_files_forget(start, length);
  selected_memory_unmapped(start, length);
}

static bool is_ours(const struct kernel_map *map) {
  const void *start = (const void *)(uintptr_t)map->start;
  return platform_owns(start) || pages_contain(start) || recording_has_file(map->name);
}

static enum map_kind kind_of(const struct kernel_map *map) {
  if (strcmp(map->name, "[heap]") == 0)
    return MAP_KIND_BREAK;
  if (strcmp(map->name, "[stack]") == 0)
    return MAP_KIND_STACK;
  if (map->name[0] == '[')
    return MAP_KIND_SPECIAL;
  return map->name[0] == '\0' ? MAP_KIND_ANONYMOUS : MAP_KIND_FILE;
}

/* The main thread's stack grows without a call; what it may grow to is its own from the start. */
static uint64_t stack_bytes_max(void) {
  struct rlimit limit = {0};
  if (raw_system_call(SYS_getrlimit, RLIMIT_STACK, (uintptr_t)&limit, 0) != 0 ||
      limit.rlim_cur > STACK_BYTES_CONSIDERED_MAX)
    return STACK_BYTES_DEFAULT;
  return limit.rlim_cur;
}

static void extend_if_stack(struct kernel_map *map) {
  uint64_t bytes = stack_bytes_max();
  if (kind_of(map) == MAP_KIND_STACK && map->end - map->start < bytes)
    map->start = map->end - bytes;
}

static void send_initial_bytes(uint64_t start, uint64_t bytes, void *user_data) {
  initial_bytes_send(user_data, start, bytes);
}

static void send(struct thread *thread, struct kernel_map *map) {
  enum map_kind kind = kind_of(map);
  extend_if_stack(map);
  send_mapping(thread, map->start, map->end - map->start, map->protection, (uint8_t)kind,
               map->offset, map->name);
  shared_mapping_send(thread, map);
  if (kind == MAP_KIND_FILE)
    mapped_files_add(map);
  if (!values_are_recorded || map->protection == 0)
    return;
  if (kind == MAP_KIND_FILE)
    file_data_each(map, send_initial_bytes, thread);
  else
    initial_bytes_send(thread, map->start, map->end - map->start);
}

/* Pages of the arena may be given back, and then be the program's: they are looked up when it
 * calls. The kernel shows them as one with their neighbours. */
static void protect_for_good(const struct kernel_map *map) {
  uint64_t start = map->start, from, to;
  while (start < map->end && pages_first(start, map->end, &from, &to)) {
    if (start < from)
      platform_keep_mapped(start, from);
    start = to;
  }
  if (start < map->end)
    platform_keep_mapped(start, map->end);
}

static bool send_if_the_programs(struct kernel_map *map, void *user_data) {
  if (is_ours(map))
    protect_for_good(map);
  else
    send(user_data, map);
  return true;
}

static bool is_private(struct kernel_map *map, void *user_data) {
  bool *is_shared = user_data;
  *is_shared = map->is_shared && (map->protection & 2) != 0 && !is_ours(map);
  return !*is_shared;
}

bool memory_map_is_shared(void) {
  bool is_shared = false;
  kernel_maps_each(is_private, &is_shared);
  return is_shared;
}

/* The break only shows in its calls: the engine keeps the program's break in memory of its own. */
static struct {
  uint64_t start, end; /* 0: not known yet */
} program_break;

static void send_break(struct thread *thread, uint64_t start, uint64_t end) {
  send_mapping(thread, start, end - start, 3, MAP_KIND_BREAK, 0, "[heap]");
  initial_bytes_send(thread, start, end - start);
}

void memory_map_break_is(struct thread *thread, uint64_t end) {
  uint64_t before = program_break.end;
  if (before == 0)
    program_break.start = end;
  else if (end > before)
    send_break(thread, before, end);
  else if (end < before)
    memory_map_send_unmap(thread, clock_advance(), end, before - end);
  program_break.end = end;
}

void memory_map_send_all(struct thread *thread) {
  kernel_maps_each(send_if_the_programs, thread);
  if (program_break.start < program_break.end)
    send_break(thread, program_break.start, program_break.end);
}

/* The kernel joins neighbours; what lay there before has been told of. */
static bool find_part(struct kernel_map *map, uint64_t start, uint64_t length) {
  if (!kernel_map_at(start, map))
    return false;
  if (length != 0) {
    map->offset += start - map->start;
    map->start = start;
    if (map->end > start + length)
      map->end = start + length;
  }
  return true;
}

void memory_map_send_at(struct thread *thread, uint64_t start, uint64_t length) {
  struct kernel_map map;
  if (find_part(&map, start, length))
    send(thread, &map);
}

void memory_map_send_anonymous(struct thread *thread, uint64_t start, uint64_t length,
                               uint8_t protection, uint8_t kind) {
  struct kernel_map map;
  send_mapping(thread, start, length, protection, kind, 0, "");
  if (recording.tree != NULL && find_part(&map, start, length))
    shared_mapping_send(thread, &map);
}

void memory_map_stack(uint64_t stack_pointer, uint64_t *low, uint64_t *high) {
  /* With nothing on the stack it is the end of the mapping. */
  struct kernel_map map = {0};
  kernel_map_at(stack_pointer - 1, &map);
  extend_if_stack(&map);
  *low = map.start;
  *high = map.end;
  platform_narrow_mapping(stack_pointer - 1, low, high);
}
