/* SPDX-License-Identifier: Apache-2.0 */
#include "yielding_functions.h"

#include <elf.h>
#include <string.h>
#include <sys/syscall.h>

#define CACHED 8192u /* a power of two */

static const char *const names[] = {"sched_yield", "pthread_yield",   "thrd_yield", "nanosleep",
                                    "usleep",      "clock_nanosleep", "thrd_sleep"};

bool is_yielding_system_call(int64_t number) {
  return number == SYS_sched_yield || number == SYS_nanosleep || number == SYS_clock_nanosleep;
}

struct linked_module {
  app_pc start;
  ptr_uint_t offset; /* of its addresses in memory to those in its file */
  const Elf64_Sym *symbols;
  const char *strings;
  const Elf64_Rela *relocations[2];
  size_t bytes[2];
  size_t unnamed; /* of the second table's, the first so many, which may be most of them */
};

/* Some linkers leave addresses in the dynamic section as they are in the file. */
static const void *pointer_of(const struct linked_module *module, Elf64_Addr address) {
  bool is_in_file = address < (Elf64_Addr)(ptr_uint_t)module->start;
  return (const void *)(ptr_uint_t)(is_in_file ? address + module->offset : address);
}

static void read_dynamic_section(struct linked_module *module, const Elf64_Dyn *dynamic) {
  for (; dynamic->d_tag != DT_NULL; dynamic++) {
    const void *pointer = pointer_of(module, dynamic->d_un.d_ptr);
    switch (dynamic->d_tag) {
    case DT_SYMTAB:
      module->symbols = pointer;
      break;
    case DT_STRTAB:
      module->strings = pointer;
      break;
    case DT_JMPREL:
      module->relocations[0] = pointer;
      break;
    case DT_PLTRELSZ:
      module->bytes[0] = dynamic->d_un.d_val;
      break;
    case DT_RELA:
      module->relocations[1] = pointer;
      break;
    case DT_RELASZ:
      module->bytes[1] = dynamic->d_un.d_val;
      break;
    case DT_RELACOUNT:
      module->unnamed = dynamic->d_un.d_val;
      break;
    default:
      break;
    }
  }
}

static bool read_module(struct linked_module *module) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)module->start;
  const Elf64_Phdr *segment = (const Elf64_Phdr *)(const void *)(module->start + header->e_phoff);
  const Elf64_Phdr *dynamic = NULL;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return false;
  bool has_start = false;
  for (int i = 0; i < header->e_phnum; i++) {
    if (segment[i].p_type == PT_DYNAMIC)
      dynamic = &segment[i];
    if (segment[i].p_type == PT_LOAD && !has_start) {
      has_start = true;
      module->offset = (ptr_uint_t)module->start - (segment[i].p_vaddr & ~(Elf64_Addr)4095);
    }
  }
  if (dynamic == NULL || !has_start)
    return false;
  read_dynamic_section(module, (const Elf64_Dyn *)(ptr_uint_t)(dynamic->p_vaddr + module->offset));
  return module->symbols != NULL && module->strings != NULL;
}

static bool is_yielding_name(const char *name) {
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (strcmp(name, names[i]) == 0)
      return true;
  }
  return false;
}

static bool links_yielding_function(const struct linked_module *module, app_pc pointer) {
  ptr_uint_t place = (ptr_uint_t)pointer - module->offset;
  for (int table = 0; table < 2; table++) {
    const Elf64_Rela *at = module->relocations[table];
    const Elf64_Rela *end = at == NULL ? NULL : at + module->bytes[table] / sizeof(*at);
    if (at != NULL && table == 1)
      at += module->unnamed;
    for (; at < end; at++) {
      uint64_t type = ELF64_R_TYPE(at->r_info);
      if (at->r_offset == place && (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT))
        return is_yielding_name(module->strings + module->symbols[ELF64_R_SYM(at->r_info)].st_name);
    }
  }
  return false;
}

static bool look_up(app_pc pointer) {
  module_data_t *data = dr_lookup_module(pointer);
  if (data == NULL)
    return false;
  struct linked_module module = {.start = data->start};
  dr_free_module_data(data);
  return read_module(&module) && links_yielding_function(&module, pointer);
}

bool is_yielding_function(app_pc pointer) {
  static struct {
    app_pc pointer;
    bool is_yielding;
  } cache[CACHED];
  size_t at = ((ptr_uint_t)pointer >> 3) % CACHED;
  if (cache[at].pointer != pointer) {
    cache[at].is_yielding = look_up(pointer);
    cache[at].pointer = pointer;
  }
  return cache[at].is_yielding;
}
