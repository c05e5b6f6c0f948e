/* SPDX-License-Identifier: Apache-2.0 */
#include "exported_functions.h"

#include "dr_api.h"

#include "drsyms.h"

#include "recording.h"

#include <elf.h>
#include <string.h>

static bool begins_with(const char *text, const char *beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

bool module_is_thread_library(const module_data_t *module) {
  const char *name = dr_module_preferred_name(module);
  return name != NULL && (begins_with(name, "libc.so") || begins_with(name, "libpthread.so") ||
                          begins_with(name, "libpthread-") || begins_with(name, "libc-2.") ||
                          begins_with(name, "libc.musl") || begins_with(name, "ld-musl"));
}

bool module_is_static_program(const module_data_t *module) {
  module_data_t *program = dr_get_main_module();
  bool is_program = program != NULL && program->start == module->start;
  if (program != NULL)
    dr_free_module_data(program);
  if (!is_program)
    return false;
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)module->start;
  const Elf64_Phdr *segments = (const Elf64_Phdr *)(const void *)(module->start + header->e_phoff);
  for (int i = 0; i < header->e_phnum; i++) {
    if (segments[i].p_type == PT_INTERP)
      return false;
  }
  return true;
}

void exported_functions(const module_data_t *module, function_found found, void *user_data) {
  dr_symbol_export_iterator_t *iterator = dr_symbol_export_iterator_start(module->handle);
  while (dr_symbol_export_iterator_hasnext(iterator)) {
    dr_symbol_export_t *symbol = dr_symbol_export_iterator_next(iterator);
    if (symbol->is_code && symbol->addr != NULL)
      found(symbol->name, symbol->addr, user_data);
  }
  dr_symbol_export_iterator_stop(iterator);
}

struct symbol_search {
  const module_data_t *module;
  function_found found;
  void *user_data;
};

static bool on_symbol(const char *name, size_t offset, void *data) {
  const struct symbol_search *search = data;
  search->found(name, search->module->start + offset, search->user_data);
  return true;
}

/* The symbol library brings a C library with it, so it is only loaded for programs that need it. */
static void *symbol_routine(const char *name) {
  static dr_auxlib_handle_t library;
  if (library == NULL) {
    char path[MAXIMUM_PATH];
    dr_snprintf(path, sizeof(path), "%s/libdrsyms.so", recording.library_folder);
    path[sizeof(path) - 1] = '\0';
    library = dr_load_aux_library(path, NULL, NULL);
    if (library == NULL)
      return NULL;
    drsym_error_t (*init)(int) = (void *)dr_lookup_aux_library_routine(library, "drsym_init");
    if (init == NULL || init(0) != DRSYM_SUCCESS)
      return NULL;
  }
  return (void *)dr_lookup_aux_library_routine(library, name);
}

void symbol_functions(const module_data_t *module, function_found found, void *user_data) {
  drsym_error_t (*enumerate)(const char *, drsym_enumerate_cb, void *, uint) =
      symbol_routine("drsym_enumerate_symbols");
  struct symbol_search search = {module, found, user_data};
  if (enumerate != NULL)
    enumerate(module->full_path, on_symbol, &search, DRSYM_LEAVE_MANGLED);
}
