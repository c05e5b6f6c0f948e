/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_file.h"

#include "platform.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* `count` elements of `size` at an offset; NULL where the file ends before. */
static const void *piece(const struct elf_file *file, uint64_t offset, uint64_t count,
                         uint64_t size) {
  if (offset > file->count || count > (file->count - offset) / size)
    return NULL;
  return file->bytes + offset;
}

static const Elf64_Ehdr *header_of(const struct elf_file *file) {
  return (const Elf64_Ehdr *)(const void *)file->bytes;
}

static const Elf64_Phdr *segments_of(const struct elf_file *file) {
  const Elf64_Ehdr *header = header_of(file);
  return piece(file, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr));
}

static bool read_segments(struct elf_file *file) {
  const Elf64_Phdr *segment = segments_of(file);
  uint64_t page = platform_page_bytes();
  file->low = UINT64_MAX;
  for (int i = 0; segment != NULL && i < header_of(file)->e_phnum; i++, segment++) {
    uint64_t start = segment->p_vaddr / page * page;
    uint64_t end = (segment->p_vaddr + segment->p_memsz + page - 1) / page * page;
    file->has_interpreter |= segment->p_type == PT_INTERP;
    if (segment->p_type != PT_LOAD)
      continue;
    if (start < file->low)
      file->low = start;
    if (end > file->high)
      file->high = end;
  }
  return file->low < file->high;
}

bool elf_file_open(struct elf_file *file, const char *path) {
  struct stat status;
  memset(file, 0, sizeof(*file));
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return false;
  void *bytes = MAP_FAILED;
  if (fstat(descriptor, &status) == 0 && (size_t)status.st_size >= sizeof(Elf64_Ehdr))
    bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  if (bytes == MAP_FAILED)
    return false;
  file->bytes = bytes;
  file->count = (size_t)status.st_size;
  const Elf64_Ehdr *header = header_of(file);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
      header->e_machine == EM_AARCH64 && read_segments(file))
    return true;
  elf_file_close(file);
  return false;
}

void elf_file_close(struct elf_file *file) { munmap((void *)file->bytes, file->count); }

bool elf_file_address_of(const struct elf_file *file, uint64_t offset, uint64_t *address) {
  const Elf64_Phdr *segment = segments_of(file);
  uint64_t page = platform_page_bytes();
  for (int i = 0; i < header_of(file)->e_phnum; i++, segment++) {
    uint64_t start = segment->p_offset / page * page;
    if (segment->p_type != PT_LOAD || offset < start ||
        offset >= segment->p_offset + segment->p_filesz)
      continue;
    *address = segment->p_vaddr - segment->p_offset + offset;
    return true;
  }
  return false;
}

/* A table of symbols and their names. */
struct symbols {
  const Elf64_Sym *symbol;
  uint64_t count;
  const char *names;
  uint64_t name_bytes;
};

static bool symbols_of(const struct elf_file *file, const Elf64_Shdr *section,
                       const Elf64_Shdr *sections, struct symbols *symbols) {
  if ((section->sh_type != SHT_SYMTAB && section->sh_type != SHT_DYNSYM) ||
      section->sh_link >= header_of(file)->e_shnum)
    return false;
  const Elf64_Shdr *names = &sections[section->sh_link];
  symbols->count = section->sh_size / sizeof(Elf64_Sym);
  symbols->symbol = piece(file, section->sh_offset, symbols->count, sizeof(Elf64_Sym));
  symbols->names = piece(file, names->sh_offset, names->sh_size, 1);
  symbols->name_bytes = names->sh_size;
  return symbols->symbol != NULL && symbols->names != NULL && symbols->name_bytes > 0 &&
         symbols->names[symbols->name_bytes - 1] == '\0';
}

/* Calls `found` for each symbol of a type that the file defines, until it returns true. */
static void each_symbol(const struct elf_file *file, unsigned type,
                        bool (*found)(const char *name, const Elf64_Sym *symbol, void *user_data),
                        void *user_data) {
  const Elf64_Ehdr *header = header_of(file);
  const Elf64_Shdr *sections = piece(file, header->e_shoff, header->e_shnum, sizeof(Elf64_Shdr));
  for (int i = 0; sections != NULL && i < header->e_shnum; i++) {
    struct symbols symbols;
    if (!symbols_of(file, &sections[i], sections, &symbols))
      continue;
    for (uint64_t at = 0; at < symbols.count; at++) {
      const Elf64_Sym *symbol = &symbols.symbol[at];
      if (ELF64_ST_TYPE(symbol->st_info) == type && symbol->st_shndx != SHN_UNDEF &&
          symbol->st_name < symbols.name_bytes &&
          found(symbols.names + symbol->st_name, symbol, user_data))
        return;
    }
  }
}

struct function_search {
  void (*found)(const char *name, uint64_t address, void *user_data);
  void *user_data;
};

static bool on_function(const char *name, const Elf64_Sym *symbol, void *user_data) {
  const struct function_search *search = user_data;
  search->found(name, symbol->st_value, search->user_data);
  return false;
}

void elf_file_functions(const struct elf_file *file,
                        void (*found)(const char *name, uint64_t address, void *user_data),
                        void *user_data) {
  struct function_search search = {found, user_data};
  each_symbol(file, STT_FUNC, on_function, &search);
}

struct object_search {
  const struct elf_file *file;
  const char *name;
  void *to;
  size_t bytes;
  bool is_found;
};

static bool on_object(const char *name, const Elf64_Sym *symbol, void *user_data) {
  struct object_search *search = user_data;
  const struct elf_file *file = search->file;
  const Elf64_Phdr *segment = segments_of(file);
  if (strcmp(name, search->name) != 0)
    return false;
  for (int i = 0; i < header_of(file)->e_phnum; i++, segment++) {
    if (segment->p_type != PT_LOAD || symbol->st_value < segment->p_vaddr ||
        symbol->st_value + search->bytes > segment->p_vaddr + segment->p_filesz)
      continue;
    const void *from =
        piece(file, symbol->st_value - segment->p_vaddr + segment->p_offset, search->bytes, 1);
    if (from == NULL)
      continue;
    memcpy(search->to, from, search->bytes);
    search->is_found = true;
  }
  return true;
}

bool elf_file_read_object(const struct elf_file *file, const char *name, void *to, size_t bytes) {
  struct object_search search = {file, name, to, bytes, false};
  each_symbol(file, STT_OBJECT, on_object, &search);
  return search.is_found;
}
