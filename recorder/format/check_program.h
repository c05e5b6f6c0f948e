/* SPDX-License-Identifier: Apache-2.0 */
/* An AArch64 program that flushes known addresses: an ELF file as the launcher writes it, and what
 * the recorder has to see of it (qemu/check.c). */
#ifndef CHECK_PROGRAM_H
#define CHECK_PROGRAM_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_PROGRAM_START 0x400000ull

/* Of its four flushes and zeroings, in this order. */
#define CHECK_FIRST_LINE (CHECK_PROGRAM_START + 0x800)
#define CHECK_LINES 4u
#define CHECK_LINE_BYTES 64u

/* What it executes. Registers are given their values in the block in which they are used, so that
 * an engine that keeps them to itself is found out. */
static const uint32_t check_program_code[] = {
    0xd2810000, /* mov  x0, #0x800 */
    0xf2a00800, /* movk x0, #0x40, lsl #16 */
    0xd50b7a20, /* dc   cvac, x0 */
    0x91010001, /* add  x1, x0, #64 */
    0xd50b7c21, /* dc   cvap, x1 */
    0x91010022, /* add  x2, x1, #64 */
    0xd50b7e22, /* dc   civac, x2 */
    0x91010043, /* add  x3, x2, #64 */
    0xd50b7423, /* dc   zva, x3 */
    0xd53b00e4, /* mrs  x4, dczid_el0 */
    0xd2800000, /* mov  x0, #0 */
    0xd2800bc8, /* mov  x8, #94 */
    0xd4000001, /* svc  #0: exit_group(0), x4 as DCZID_EL0 */
};
#define CHECK_INSTRUCTIONS (sizeof(check_program_code) / sizeof(check_program_code[0]))
#define CHECK_BLOCK_SIZE_REGISTER 4u

struct check_program {
  Elf64_Ehdr header;
  Elf64_Phdr segment;
  uint32_t code[CHECK_INSTRUCTIONS];
};

static inline struct check_program check_program(void) {
  struct check_program program = {
      .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                             EV_CURRENT},
                 .e_type = ET_EXEC,
                 .e_machine = EM_AARCH64,
                 .e_version = EV_CURRENT,
                 .e_entry = CHECK_PROGRAM_START + offsetof(struct check_program, code),
                 .e_phoff = offsetof(struct check_program, segment),
                 .e_ehsize = sizeof(Elf64_Ehdr),
                 .e_phentsize = sizeof(Elf64_Phdr),
                 .e_phnum = 1},
      .segment = {.p_type = PT_LOAD,
                  .p_flags = PF_R | PF_W | PF_X,
                  .p_vaddr = CHECK_PROGRAM_START,
                  .p_paddr = CHECK_PROGRAM_START,
                  .p_filesz = sizeof(struct check_program),
                  .p_memsz = 0x1000,
                  .p_align = 0x1000}};
  for (unsigned i = 0; i < CHECK_INSTRUCTIONS; i++)
    program.code[i] = check_program_code[i];
  return program;
}

#endif
