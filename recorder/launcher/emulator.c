/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator.h"

#include "check_program.h"
#include "complaint.h"
#include "library_path.h"
#include "search_path.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define EMULATOR "qemu-aarch64"
#define RECORDER "libfencepost-recorder-qemu.so"
/* Where Debian's cross compiler has the C library. */
#define SYSROOT_DEFAULT "/usr/aarch64-linux-gnu"
/* An ordinary server's core: large-system atomics and DC CVAP, but neither SVE nor pointer
 * authentication, which the recorder does not decode. */
#define PROCESSOR "neoverse-n1"
#define OUTPUT_BYTES 4096

/* Runs a command; what it printed on both outputs, and its wait status. */
static int output_of(char *const command[], char output[OUTPUT_BYTES]) {
  int ends[2], status;
  if (pipe(ends) != 0)
    fail(EXIT_OURS, "pipe: %s", strerror(errno));
  pid_t child = fork();
  if (child < 0)
    fail(EXIT_OURS, "fork: %s", strerror(errno));
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(command[0], command);
    _exit(EXIT_NOT_FOUND);
  }
  close(ends[1]);
  size_t length = 0;
  ssize_t count;
  char rest[256];
  while ((count = length < OUTPUT_BYTES - 1
                      ? read(ends[0], output + length, OUTPUT_BYTES - 1 - length)
                      : read(ends[0], rest, sizeof(rest))) > 0)
    length += length < OUTPUT_BYTES - 1 ? (size_t)count : 0;
  output[length] = '\0';
  close(ends[0]);
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      fail(EXIT_OURS, "waitpid: %s", strerror(errno));
  }
  return status;
}

/* "qemu-aarch64 version 7.2.22 (Debian …)" */
static void ask_version(struct emulator *emulator) {
  char output[OUTPUT_BYTES], *command[] = {emulator->path, "--version", NULL};
  int status = output_of(command, output);
  const char *version = strstr(output, "version ");
  if (status != 0 || version == NULL)
    fail(EXIT_WRONG_OPTIONS,
         "%s does not say which version it is; install Debian's: type: sudo apt-get "
         "install qemu-user",
         emulator->path);
  version += strlen("version ");
  snprintf(emulator->engine, sizeof(emulator->engine), "QEMU %.*s",
           (int)strspn(version, "0123456789."), version);
}

/* A comma in the option of the emulator is written twice. */
static char *plugin_option(const char *argument) {
  char path[PATH_MAX], doubled[2 * PATH_MAX], *to = doubled, *option;
  library_path(path, RECORDER);
  for (const char *from = path; *from != '\0'; from++) {
    if (*from == ',')
      *to++ = ',';
    *to++ = *from;
  }
  *to = '\0';
  if (asprintf(&option, "%s,%s", doubled, argument) < 0)
    fail(EXIT_OURS, "out of memory");
  return option;
}

static void write_check_program(char *path, size_t capacity) {
  struct check_program program = check_program();
  int file = memfd_create("fencepost-check", 0);
  if (file < 0 || write(file, &program, sizeof(program)) != (ssize_t)sizeof(program))
    fail(EXIT_OURS, "cannot make a program to try QEMU with: %s", strerror(errno));
  snprintf(path, capacity, "/proc/%d/fd/%d", (int)getpid(), file);
}

/* The recorder uses what QEMU does not promise: it is tried on a program of which all is known. */
static void try_out(const struct emulator *emulator) {
  char path[64], output[OUTPUT_BYTES], *option = plugin_option("check=on");
  write_check_program(path, sizeof(path));
  char *command[] = {emulator->path, "-cpu", PROCESSOR, "-plugin", option, path, NULL};
  int status = output_of(command, output);
  free(option);
  if (status == 0)
    return;
  char *line = strstr(output, "fencepost: recorder: ");
  line = line == NULL ? output : line + strlen("fencepost: recorder: ");
  line[strcspn(line, "\n")] = '\0';
  fail(EXIT_WRONG_OPTIONS,
       "%s (%s) cannot be used for recording: %s; put version 7.2 as Debian 12 has it, or "
       "9 or newer built with plugins, first on the PATH",
       emulator->path, emulator->engine, line[0] == '\0' ? "it ended without a word" : line);
}

static const char *sysroot_of(const struct arguments *arguments) {
  const char *prefix = getenv("QEMU_LD_PREFIX");
  return arguments->sysroot != NULL            ? arguments->sysroot
         : prefix != NULL && prefix[0] != '\0' ? prefix
                                               : SYSROOT_DEFAULT;
}

static void check_loader(const struct emulator *emulator, const struct program *program) {
  char *path;
  if (program->loader == NULL)
    return;
  if (asprintf(&path, "%s%s", emulator->sysroot, program->loader) < 0)
    fail(EXIT_OURS, "out of memory");
  if (access(path, R_OK) != 0 && access(emulator->sysroot, F_OK) != 0)
    fail(EXIT_WRONG_OPTIONS,
         "%s: needs AArch64's libraries, and there is no %s; type: sudo apt-get install "
         "libc6-arm64-cross, or name the folder that has them with --sysroot FOLDER",
         program->path, emulator->sysroot);
  if (access(path, R_OK) != 0)
    fail(EXIT_WRONG_OPTIONS,
         "%s: its loader %s is not in %s; name the folder that has it with --sysroot FOLDER, or "
         "link the program with -static",
         program->path, program->loader, emulator->sysroot);
  free(path);
}

void emulator_find(struct emulator *emulator, const struct arguments *arguments,
                   const struct program *program) {
  emulator->path = search_path(EMULATOR);
  if (emulator->path == NULL || access(emulator->path, X_OK) != 0)
    fail(EXIT_WRONG_OPTIONS,
         "%s: an AArch64 program; it is recorded under QEMU, and there is no " EMULATOR
         " on the PATH; type: sudo apt-get install qemu-user",
         program->path);
  if (arguments->children)
    fail(EXIT_WRONG_OPTIONS, "--children: the children of an AArch64 program cannot be recorded");
  emulator->sysroot = sysroot_of(arguments);
  emulator->compares_addresses = arguments->compare_addresses;
  check_loader(emulator, program);
  ask_version(emulator);
  try_out(emulator);
}

void emulator_become(const struct emulator *emulator, const struct program *program,
                     int control_descriptor, int launcher) {
  char control[64];
  size_t count = 0, at = 0;
  snprintf(control, sizeof(control), "control=/proc/%d/fd/%d%s", launcher, control_descriptor,
           emulator->compares_addresses ? ",compare=on" : "");
  while (program->arguments[count] != NULL)
    count++;
  char **command = calloc(count + 16, sizeof(*command));
  if (command == NULL)
    fail(EXIT_OURS, "out of memory");
  command[at++] = emulator->path;
  command[at++] = "-cpu";
  command[at++] = PROCESSOR;
  command[at++] = "-L";
  command[at++] = (char *)emulator->sysroot;
  command[at++] = "-plugin";
  command[at++] = plugin_option(control);
  command[at++] = "-0";
  command[at++] = program->arguments[0];
  command[at++] = program->path;
  for (size_t i = 1; i < count; i++)
    command[at++] = program->arguments[i];
  execv(emulator->path, command);
}
