/* SPDX-License-Identifier: Apache-2.0 */
#include "loaded_modules.h"

#include "fields.h"
#include "platform.h"
#include "record_format.h"
#include "recording.h"

#include <elf.h>
#include <string.h>

static const void *at_address(uint64_t address) { return (const void *)(uintptr_t)address; }

/* The build id among the module's notes; its length, or 0. */
static size_t build_id_of(const struct loaded_module *module, uint8_t *id, size_t capacity) {
  Elf64_Ehdr header;
  size_t read;
  if (!platform_read(at_address(module->start), sizeof(header), &header, &read) ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return 0;
  for (int i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    uint8_t notes[1024];
    uint64_t described_at = module->start + header.e_phoff + (uint64_t)i * sizeof(segment);
    if (!platform_read(at_address(described_at), sizeof(segment), &segment, &read) ||
        segment.p_type != PT_NOTE || segment.p_filesz > sizeof(notes) ||
        !platform_read(at_address(module->start + (segment.p_vaddr - module->linked_at)),
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

void loaded_module_send(struct thread *thread, const struct loaded_module *module) {
  uint8_t build_id[64];
  if (module->path != NULL && recording_has_file(module->path))
    return;
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, module->start);
  fields_number(&fields, module->end - module->start);
  fields_bytes(&fields, build_id, build_id_of(module, build_id, sizeof(build_id)));
  fields_text(&fields, module->path == NULL ? "" : module->path);
  fields_send_clocked(&fields, thread, EVENT_MODULE, clock_advance());
}

static void send_to(const struct loaded_module *module, void *thread) {
  loaded_module_send(thread, module);
}

void loaded_modules_send_all(struct thread *thread) { platform_visit_modules(send_to, thread); }
