/* SPDX-License-Identifier: Apache-2.0 */
#include "guest_modules.h"

#include "elf_file.h"
#include "engine.h"
#include "guest.h"
#include "kernel_maps.h"
#include "loaded_modules.h"
#include "recording.h"
#include "region_of_interest.h"
#include "special_blocks.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct module {
  struct loaded_module loaded;
  struct module *next;
};

static struct {
  void *lock;
  struct module *list, *last;
  char program[PATH_MAX];
} modules;

void guest_modules_init(void) { modules.lock = platform_mutex_create(); }

const char *guest_program_path(void) {
  if (modules.program[0] == '\0' && realpath(recording.area->program, modules.program) == NULL)
    modules.program[0] = '\0';
  return modules.program;
}

static bool begins_with(const char *text, const char *beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Those whose functions threads synchronise by. */
static bool is_thread_library(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
  return begins_with(name, "libc.so") || begins_with(name, "libpthread.so") ||
         begins_with(name, "libpthread-") || begins_with(name, "libc-2.") ||
         begins_with(name, "libc.musl") || begins_with(name, "ld-musl");
}

struct search {
  uint64_t bias;
  bool may_synchronise;
};

static void on_function(const char *name, uint64_t address, void *user_data) {
  const struct search *search = user_data;
  special_block_is_function(address + search->bias, name, search->may_synchronise);
}

static void search_functions(const struct elf_file *file, const struct loaded_module *module) {
  bool is_static = !file->has_interpreter && strcmp(module->path, guest_program_path()) == 0;
  struct search search = {module->start - module->linked_at,
                          is_static || is_thread_library(module->path)};
  uint32_t handle_offset;
  if (search.may_synchronise || region_of_interest_has_functions())
    elf_file_functions(file, on_function, &search);
  if (search.may_synchronise && elf_file_read_object(file, "_thread_db_sizeof_pthread",
                                                     &handle_offset, sizeof(handle_offset)))
    guest_handles_are_below(handle_offset);
}

static bool is_known(uint64_t start, const char *path) {
  for (const struct module *module = modules.list; module != NULL; module = module->next) {
    if (module->loaded.start == start && strcmp(module->loaded.path, path) == 0)
      return true;
  }
  return false;
}

/* The module of which a mapping is a part; NULL where it is none, or not for the first time. */
static const struct module *add_module(const struct kernel_map *map) {
  struct elf_file file;
  uint64_t linked_at;
  if (map->inode == 0 || map->name[0] != '/' || !elf_file_open(&file, map->name))
    return NULL;
  struct module *module = NULL;
  if (elf_file_address_of(&file, map->offset, &linked_at) &&
      !is_known(map->start - linked_at + file.low, map->name)) {
    module = platform_allocate(sizeof(*module));
    uint64_t start = map->start - linked_at + file.low;
    *module = (struct module){.loaded = {.start = start,
                                         .end = start + (file.high - file.low),
                                         .linked_at = file.low,
                                         .path = strdup(map->name)}};
    platform_mutex_lock(modules.lock);
    if (modules.last == NULL)
      modules.list = module;
    else
      modules.last->next = module;
    modules.last = module;
    platform_mutex_unlock(modules.lock);
    search_functions(&file, &module->loaded);
  }
  elf_file_close(&file);
  return module;
}

static bool add_if_code(struct kernel_map *map, void *user_data) {
  int protection;
  (void)user_data;
  if (platform_owns((const void *)(uintptr_t)map->start))
    return true;
  if (engine_has_page(map->start, &protection) && (protection & PROT_EXEC) != 0)
    add_module(map);
  return true;
}

void guest_modules_find(void) { kernel_maps_each(add_if_code, NULL); }

void guest_modules_send(struct thread *thread) {
  for (const struct module *module = modules.list; module != NULL; module = module->next)
    loaded_module_send(thread, &module->loaded);
}

void guest_module_is_mapped(struct thread *thread, uint64_t address) {
  struct kernel_map map;
  const struct module *module = kernel_map_at(address, &map) ? add_module(&map) : NULL;
  if (module != NULL)
    loaded_module_send(thread, &module->loaded);
}

void guest_modules_each(void (*visit)(const struct loaded_module *module, void *user_data),
                        void *user_data) {
  for (const struct module *module = modules.list; module != NULL; module = module->next)
    visit(&module->loaded, user_data);
}
