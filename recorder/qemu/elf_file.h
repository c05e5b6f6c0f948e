/* SPDX-License-Identifier: Apache-2.0 */
/* A 64-bit ELF file: which addresses it is linked at, its functions and data by name. */
#ifndef ELF_FILE_H
#define ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
  const uint8_t *bytes;
  size_t count;
  bool has_interpreter;
  uint64_t low, high; /* pages that its segments take, as it is linked */
};

/* False where it is none. */
bool elf_file_open(struct elf_file *file, const char *path);
void elf_file_close(struct elf_file *file);

/* The address that the byte at an offset in the file is linked at. */
bool elf_file_address_of(const struct elf_file *file, uint64_t offset, uint64_t *address);

/* Calls `found` for each function that the file defines, with the address that it is linked at. */
void elf_file_functions(const struct elf_file *file,
                        void (*found)(const char *name, uint64_t address, void *user_data),
                        void *user_data);

/* What a constant of this name holds. */
bool elf_file_read_object(const struct elf_file *file, const char *name, void *to, size_t bytes);

#endif
