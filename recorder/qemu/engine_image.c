/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_image.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct segment {
  char *start, *end;
  bool is_writable;
};

/* Linkers make four or five that are loaded; what lies in others is not found. */
#define SEGMENTS_MAX 16

static struct {
  struct segment segment[SEGMENTS_MAX];
  int segments;
  uintptr_t base;
  const Elf64_Dyn *dynamic;
} image;

/* The first object is the executable. */
static int read_segments(struct dl_phdr_info *object, size_t bytes, void *user_data) {
  (void)bytes, (void)user_data;
  image.base = object->dlpi_addr;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const Elf64_Phdr *header = &object->dlpi_phdr[i];
    char *start = (char *)(object->dlpi_addr + header->p_vaddr);
    if (header->p_type == PT_DYNAMIC)
      image.dynamic = (const Elf64_Dyn *)(void *)start;
    if (header->p_type != PT_LOAD || (header->p_flags & PF_R) == 0 ||
        image.segments == SEGMENTS_MAX)
      continue;
    image.segment[image.segments++] =
        (struct segment){start, start + header->p_filesz, (header->p_flags & PF_W) != 0};
  }
  return 1;
}

static void open_image(void) {
  if (image.segments == 0)
    dl_iterate_phdr(read_segments, NULL);
}

/* Where the text stands as a whole string. */
static const char *find_text(const char *text) {
  size_t bytes = strlen(text) + 1;
  for (int i = 0; i < image.segments; i++) {
    const struct segment *segment = &image.segment[i];
    for (const char *at = segment->start; at + bytes < segment->end; at++) {
      at = memchr(at, '\0', (size_t)(segment->end - at) - bytes);
      if (at == NULL)
        break;
      if (memcmp(at + 1, text, bytes) == 0)
        return at + 1;
    }
  }
  return NULL;
}

void **engine_image_find_pointer_to(const char *text) {
  open_image();
  const char *at = find_text(text);
  void **found = NULL;
  for (int i = 0; i < image.segments && at != NULL; i++) {
    if (!image.segment[i].is_writable)
      continue;
    uintptr_t start = ((uintptr_t)image.segment[i].start + 7) & ~(uintptr_t)7;
    for (void **word = (void **)start; (char *)(word + 1) <= image.segment[i].end; word++) {
      if (*word != (const void *)at)
        continue;
      if (found != NULL)
        return NULL;
      found = word;
    }
  }
  return found;
}

bool engine_image_write(void *to, const void *bytes, size_t count) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t start = (uintptr_t)to & ~(page - 1);
  size_t length = (uintptr_t)to + count - start;
  if (mprotect((void *)start, length, PROT_READ | PROT_WRITE) != 0)
    return false;
  memcpy(to, bytes, count);
  return true;
}

/* What the dynamic section says of itself under a tag. */
static uintptr_t dynamic_value(Elf64_Sxword tag) {
  for (const Elf64_Dyn *entry = image.dynamic; entry != NULL && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == tag)
      return entry->d_un.d_ptr;
  }
  return 0;
}

static bool replace_in(const Elf64_Rela *relocation, size_t bytes, const char *name,
                       void *function) {
  const Elf64_Sym *symbols = (const Elf64_Sym *)dynamic_value(DT_SYMTAB);
  const char *names = (const char *)dynamic_value(DT_STRTAB);
  bool is_replaced = false;
  for (; bytes >= sizeof(*relocation); bytes -= sizeof(*relocation), relocation++) {
    uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
    if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
        strcmp(names + symbols[ELF64_R_SYM(relocation->r_info)].st_name, name) != 0)
      continue;
    void *slot = (void *)(image.base + relocation->r_offset);
    is_replaced |= engine_image_write(slot, &function, sizeof(function));
  }
  return is_replaced;
}

bool engine_image_replace_import(const char *name, void *function) {
  open_image();
  bool is_called = replace_in((const Elf64_Rela *)dynamic_value(DT_JMPREL),
                              dynamic_value(DT_PLTRELSZ), name, function);
  bool is_taken = replace_in((const Elf64_Rela *)dynamic_value(DT_RELA), dynamic_value(DT_RELASZ),
                             name, function);
  return is_called || is_taken;
}
