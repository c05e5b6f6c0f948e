/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_map.h"

#include "dr_api.h"

#include "drmgr.h"

#include "arena.h"
#include "fields.h"
#include "file_data.h"
#include "kernel_maps.h"
#include "kernel_writes.h"
#include "mapped_files.h"
#include "raw_system_call.h"
#include "record_format.h"
#include "recording.h"
#include "selected_memory.h"
#include "withheld_calls.h"

#include <elf.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Where the limit is none, or so large that nobody means it. */
#define STACK_BYTES_DEFAULT (8u << 20)
#define STACK_BYTES_CONSIDERED_MAX (1u << 30)

void memory_map_send(struct thread *thread, uint64_t start, uint64_t length, uint8_t protection,
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

static bool is_in_our_folder(const char *path) {
  size_t folder = strlen(recording.library_folder);
  return strncmp(path, recording.library_folder, folder) == 0 && path[folder] == '/';
}

static bool is_ours(const struct kernel_map *map) {
  byte *start = (byte *)(ptr_uint_t)map->start;
  return dr_memory_is_dr_internal(start) || dr_memory_is_in_client(start) || pages_contain(start) ||
         is_in_our_folder(map->name);
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
  if (raw_system_call(SYS_getrlimit, RLIMIT_STACK, (reg_t)&limit, 0) != 0 ||
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
  memory_map_send(thread, map->start, map->end - map->start, map->protection, (uint8_t)kind,
                  map->offset, map->name);
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
      withheld_calls_protect(start, from);
    start = to;
  }
  if (start < map->end)
    withheld_calls_protect(start, map->end);
}

static bool send_if_the_programs(struct kernel_map *map, void *user_data) {
  if (is_ours(map))
    protect_for_good(map);
  else
    send(user_data, map);
  return true;
}

/* The break only shows in its calls: the engine keeps the program's break in memory of its own. */
static struct {
  uint64_t start, end; /* 0: not known yet */
} program_break;

static void send_break(struct thread *thread, uint64_t start, uint64_t end) {
  memory_map_send(thread, start, end - start, 3, MAP_KIND_BREAK, 0, "[heap]");
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

struct search {
  uint64_t address;
  struct kernel_map found;
};

static bool keep_if_around(struct kernel_map *map, void *user_data) {
  struct search *search = user_data;
  if (search->address < map->start || search->address >= map->end)
    return true;
  search->found = *map;
  return false;
}

void memory_map_send_at(struct thread *thread, uint64_t start, uint64_t length) {
  struct search search = {.address = start};
  struct kernel_map *map = &search.found;
  kernel_maps_each(keep_if_around, &search);
  if (map->end == 0)
    return;
  /* The kernel joins neighbours; what lay there before has been told of. */
  if (length != 0) {
    map->offset += start - map->start;
    map->start = start;
    if (map->end > start + length)
      map->end = start + length;
  }
  send(thread, map);
}

void memory_map_stack(uint64_t stack_pointer, uint64_t *low, uint64_t *high) {
  struct search search = {.address = stack_pointer};
  kernel_maps_each(keep_if_around, &search);
  extend_if_stack(&search.found);
  *low = search.found.start;
  *high = search.found.end;
}

/* The build id among the module's notes; its length, or 0. */
static size_t build_id_of(const module_data_t *module, uint8_t *id, size_t capacity) {
  Elf64_Ehdr header;
  size_t read;
  if (!dr_safe_read(module->start, sizeof(header), &header, &read) ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return 0;
  for (int i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    uint8_t notes[1024];
    if (!dr_safe_read(module->start + header.e_phoff + i * sizeof(segment), sizeof(segment),
                      &segment, &read) ||
        segment.p_type != PT_NOTE || segment.p_filesz > sizeof(notes) ||
        !dr_safe_read(module->start +
                          (segment.p_vaddr - (uint64_t)(ptr_uint_t)module->preferred_base),
                      segment.p_filesz, notes, &read))
      continue;
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= segment.p_filesz;) {
      Elf64_Nhdr note;
      memcpy(&note, notes + at, sizeof(note));
      size_t name = at + sizeof(note), value = name + (note.n_namesz + 3) / 4 * 4;
      if (value + note.n_descsz > segment.p_filesz)
        break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz <= capacity &&
          strncmp((const char *)notes + name, "GNU", 4) == 0) {
        memcpy(id, notes + value, note.n_descsz);
        return note.n_descsz;
      }
      at = value + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 0;
}

static void send_module(struct thread *thread, const module_data_t *module) {
  uint8_t build_id[64];
  const char *name = module->full_path;
  if (name == NULL || name[0] == '\0')
    name = dr_module_preferred_name(module);
  if (name != NULL && is_in_our_folder(name))
    return;
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, (uint64_t)(ptr_uint_t)module->start);
  fields_number(&fields, (uint64_t)(module->end - module->start));
  fields_bytes(&fields, build_id, build_id_of(module, build_id, sizeof(build_id)));
  fields_text(&fields, name == NULL ? "" : name);
  fields_send_clocked(&fields, thread, EVENT_MODULE, clock_advance());
}

static void on_module(void *drcontext, const module_data_t *module, bool loaded) {
  struct thread *thread = thread_of(drcontext);
  if (thread != NULL && thread->is_recorded)
    send_module(thread, module);
}

void memory_map_send_modules(struct thread *thread) {
  dr_module_iterator_t *modules = dr_module_iterator_start();
  while (dr_module_iterator_hasnext(modules)) {
    module_data_t *module = dr_module_iterator_next(modules);
    send_module(thread, module);
    dr_free_module_data(module);
  }
  dr_module_iterator_stop(modules);
}

void memory_map_init(void) { drmgr_register_module_load_event(on_module); }

void memory_map_exit(void) { drmgr_unregister_module_load_event(on_module); }
