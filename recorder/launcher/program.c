/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include "complaint.h"
#include "search_path.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many interpreters of interpreters as the kernel follows. */
#define INTERPRETERS_MAX 5

/* What is typed to make a program of a source file. */
static const struct {
  const char *suffix;
  const char *command;
} COMPILERS[] = {
    {".c", "gcc -O2 -g"},   {".cc", "g++ -O2 -g"},  {".cpp", "g++ -O2 -g"},
    {".cxx", "g++ -O2 -g"}, {".rs", "rustc -O -g"}, {".f90", "gfortran -O2 -g"},
};

/* A source file is named where its program is meant. */
static void refuse_source(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *suffix = strrchr(slash != NULL ? slash : path, '.');
  if (suffix == NULL)
    return;
  int stem = (int)(suffix - path);
  for (size_t i = 0; i < sizeof COMPILERS / sizeof *COMPILERS; i++)
    if (strcmp(suffix, COMPILERS[i].suffix) == 0)
      fail(EXIT_NOT_EXECUTABLE,
           "%s: that is source code; compile it, and record the program: %s %s -o %.*s", path,
           COMPILERS[i].command, path, stem, path);
  if (strcmp(suffix, ".py") == 0)
    fail(EXIT_NOT_EXECUTABLE, "%s: that is source code; record its interpreter: -- python3 %s",
         path, path);
}

static void check_status(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0)
    fail(errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "%s: %s", path,
         errno == ENOENT ? "not found" : strerror(errno));
  if (!S_ISREG(status.st_mode))
    fail(EXIT_NOT_EXECUTABLE, "%s: not a file that can be executed", path);
  if (access(path, X_OK) != 0) {
    int reason = errno;
    refuse_source(path);
    fail(EXIT_NOT_EXECUTABLE, "%s: %s%s", path, strerror(reason),
         reason == EACCES ? "; if it is a program, make it executable with chmod +x" : "");
  }
  if (((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
      ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
       status.st_gid != getegid()))
    fail(EXIT_NOT_EXECUTABLE,
         "%s: a set-uid or set-gid program cannot be recorded; record a copy without that bit",
         path);
}

/* What stands at the start of the file; the number of bytes. */
static size_t read_start(const char *path, char *start, size_t capacity) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    fail(EXIT_NOT_EXECUTABLE, "%s: cannot be read, so it cannot be recorded: %s", path,
         strerror(errno));
  ssize_t count = read(file, start, capacity);
  close(file);
  return count < 0 ? 0 : (size_t)count;
}

/* Machines whose programs are met now and then, by their names. */
static const char *machine_name(unsigned machine) {
  switch (machine) {
  case EM_ARM:
    return "a 32-bit Arm (AArch32)";
  case EM_RISCV:
    return "a RISC-V";
  case EM_PPC64:
    return "a POWER";
  case EM_S390:
    return "an s390x";
  default:
    return "a";
  }
}

/* Which machine's program it is, of those that can be recorded. */
static enum machine machine_of(const char *path, const Elf64_Ehdr *header) {
  unsigned machine = header->e_machine;
  bool is_32_bit = header->e_ident[EI_CLASS] == ELFCLASS32;
  if (is_32_bit && (machine == EM_386 || machine == EM_X86_64))
    fail(EXIT_NOT_EXECUTABLE, "%s: a 32-bit program; only 64-bit ones can be recorded", path);
  if (machine == EM_X86_64)
    return MACHINE_X86_64;
  if (machine == EM_AARCH64 && !is_32_bit && header->e_ident[EI_DATA] == ELFDATA2LSB)
    return MACHINE_AARCH64;
  fail(EXIT_WRONG_OPTIONS,
       "%s: %s program (ELF machine %u); what can be recorded are programs for x86-64 and AArch64: "
       "compile it with cc or aarch64-linux-gnu-gcc",
       path, machine_name(machine), machine);
}

/* The loader that the program asks for; NULL where it asks for none. */
static char *loader_of(const char *path, const char *start, size_t count) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)start;
  for (unsigned i = 0; i < header->e_phnum; i++) {
    Elf64_Phdr segment;
    uint64_t at = header->e_phoff + i * sizeof(segment);
    if (at + sizeof(segment) > count)
      fail(EXIT_NOT_EXECUTABLE, "%s: not an executable", path);
    memcpy(&segment, start + at, sizeof(segment));
    if (segment.p_type != PT_INTERP)
      continue;
    if (segment.p_offset >= count || segment.p_filesz >= count - segment.p_offset)
      fail(EXIT_NOT_EXECUTABLE, "%s: the name of its loader is not at its start", path);
    return strndup(start + segment.p_offset, segment.p_filesz);
  }
  return NULL;
}

static void check_executable(struct program *program, const char *start, size_t count) {
  const char *path = program->path;
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)start;
  if (count < sizeof(*header) || memcmp(start, ELFMAG, SELFMAG) != 0) {
    refuse_source(path);
    fail(EXIT_NOT_EXECUTABLE, "%s: neither an executable nor a script with #!", path);
  }
  program->machine = machine_of(path, header);
  if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
    fail(EXIT_NOT_EXECUTABLE, "%s: not an executable", path);
  program->loader = program->machine == MACHINE_AARCH64 ? loader_of(path, start, count) : NULL;
}

/* Puts the interpreter that a script's first line names before the arguments. */
static void interpret(struct program *program, char *line) {
  line += 2 + strspn(line + 2, " \t");
  line[strcspn(line, "\n")] = '\0';
  char *option = line + strcspn(line, " \t");
  if (*option != '\0') {
    *option++ = '\0';
    option += strspn(option, " \t");
    size_t length = strlen(option);
    while (length > 0 && strchr(" \t\r", option[length - 1]) != NULL)
      option[--length] = '\0';
  }
  if (line[0] == '\0')
    fail(EXIT_NOT_EXECUTABLE, "%s: its first line names no interpreter", program->path);
  size_t count = 0;
  while (program->arguments[count] != NULL)
    count++;
  char **arguments = calloc(count + 3, sizeof(*arguments));
  if (arguments == NULL)
    fail(EXIT_OURS, "out of memory");
  size_t at = 0;
  arguments[at++] = strdup(line);
  if (*option != '\0')
    arguments[at++] = strdup(option);
  arguments[at++] = program->path;
  for (size_t i = 1; i < count; i++)
    arguments[at++] = program->arguments[i];
  program->path = strdup(line);
  program->arguments = arguments;
}

void program_find(struct program *program, char **command) {
  program->path = search_path(command[0]);
  if (program->path == NULL)
    fail(EXIT_NOT_FOUND, "%s: not found", command[0][0] == '\0' ? "''" : command[0]);
  program->arguments = command;
  for (int depth = 0;; depth++) {
    char start[PATH_MAX + 1];
    check_status(program->path);
    size_t count = read_start(program->path, start, sizeof(start) - 1);
    start[count] = '\0';
    if (count < 2 || start[0] != '#' || start[1] != '!') {
      check_executable(program, start, count);
      return;
    }
    if (depth == INTERPRETERS_MAX)
      fail(EXIT_NOT_EXECUTABLE, "%s: too many interpreters", command[0]);
    interpret(program, start);
  }
}
