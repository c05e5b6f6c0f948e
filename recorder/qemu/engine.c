/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include "a64.h"
#include "engine_image.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* GLib's, as its interface has it. */
struct byte_array {
  uint8_t *data;
  unsigned length;
};

/* QEMU 9's description of a register. */
struct register_descriptor {
  void *handle;
  const char *name;
  const char *feature;
};
struct array {
  struct register_descriptor *data;
  unsigned length;
};

/* The program counter's number among the registers that QEMU shows a debugger. */
#define GDB_PROGRAM_COUNTER 32

/* How far into a virtual processor's state its registers are looked for; where they lie further on,
 * check.c finds none, and nothing is recorded. */
#define STATE_BYTES (64u * 1024)

/* QEMU's names for what a page may be used for. */
enum page_flags {
  PAGE_READ = 1,
  PAGE_WRITE = 2,
  PAGE_EXECUTE = 4,
  PAGE_VALID = 8,
  PAGE_WRITE_ORIGINAL = 16
};

static struct {
  void *(*get_cpu)(int index);
  int (*gdb_read_register)(void *cpu, struct byte_array *to, int number);
  int (*page_get_flags)(uint64_t address);
  void (*start_exclusive)(void);
  void (*end_exclusive)(void);
  struct byte_array *(*byte_array_new)(void);
  struct byte_array *(*byte_array_set_size)(struct byte_array *array, unsigned length);

  struct array *(*plugin_get_registers)(void);
  int (*plugin_read_register)(void *handle, struct byte_array *to);
  void *handle[A64_REGISTERS + 1];

  void (*translate_instruction)(void *context, void *cpu);
  int memory; /* /proc/self/mem, which writes whatever a page's protection is */
  void (*before_death)(int signal);
} engine;

static __thread uint64_t copied[A64_REGISTERS];
static __thread struct byte_array *bytes;

static void *symbol(const char *name) { return dlsym(RTLD_DEFAULT, name); }

/* QEMU 7.2's helper that calls a plugin before an instruction says that it reads no registers, so
 * generated code keeps them to itself. The flags stand behind the helper's name. */
#define HELPER_NAME "plugin_vcpu_udata_cb"
#define NO_READ_OR_WRITE_OF_REGISTERS 1u
#define NO_WRITE_OF_REGISTERS 2u

static bool make_registers_readable(void) {
  void **name = engine_image_find_pointer_to(HELPER_NAME);
  if (name == NULL)
    return false;
  uint32_t flags = NO_WRITE_OF_REGISTERS;
  if (memcmp(name + 1, &(uint32_t){NO_READ_OR_WRITE_OF_REGISTERS}, sizeof(flags)) != 0)
    return false;
  return engine_image_write(name + 1, &flags, sizeof(flags));
}

/* The translator's context has the address of the instruction as its third word. */
static uint64_t translated_address(const void *context) {
  uint64_t words[3];
  memcpy(words, context, sizeof(words));
  return words[2];
}

/* QEMU 7.2 has DC CVAP and DC CVADP in no processor that runs programs. While one is translated, DC
 * CVAC stands in its place. */
static void translate_instruction(void *context, void *cpu) {
  uint64_t address = translated_address(context);
  uint32_t word;
  memcpy(&word, (const void *)(uintptr_t)address, sizeof(word));
  bool is_replaced = false;
  if (a64_is_clean_to_persistence(word)) {
    uint32_t instead = a64_as_clean_to_coherence(word);
    is_replaced =
        pwrite(engine.memory, &instead, sizeof(instead), (off_t)address) == sizeof(instead);
  }
  engine.translate_instruction(context, cpu);
  if (is_replaced) {
    ssize_t written = pwrite(engine.memory, &word, sizeof(word), (off_t)address);
    (void)written;
  }
}

static bool accept_cleans_to_persistence(void) {
  void **operations = symbol("aarch64_translator_ops");
  void *ours = (void *)translate_instruction;
  if (operations == NULL)
    return false;
  engine.memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  engine.translate_instruction = (void (*)(void *, void *))operations[3];
  return engine.memory >= 0 && engine_image_write(&operations[3], &ours, sizeof(ours));
}

static const char *open_by_exports(void) {
  if (engine.get_cpu == NULL || engine.gdb_read_register == NULL)
    return "it neither offers registers to plugins (QEMU 9 and newer do) nor exports what reads "
           "them (Debian's QEMU 7.2 does)";
  if (engine.page_get_flags == NULL)
    return "it does not export which pages are the program's";
  if (!make_registers_readable())
    return "the description of its helper " HELPER_NAME " is not as in QEMU 7.2";
  if (!accept_cleans_to_persistence())
    return "its translator cannot be made to accept DC CVAP";
  return NULL;
}

const char *engine_open(void) {
  const uint64_t *guest_base = symbol("guest_base");
  engine.get_cpu = symbol("qemu_get_cpu");
  engine.gdb_read_register = symbol("aarch64_cpu_gdb_read_register");
  engine.page_get_flags = symbol("page_get_flags");
  engine.start_exclusive = symbol("start_exclusive");
  engine.end_exclusive = symbol("end_exclusive");
  engine.byte_array_new = symbol("g_byte_array_new");
  engine.byte_array_set_size = symbol("g_byte_array_set_size");
  engine.plugin_get_registers = symbol("qemu_plugin_get_registers");
  engine.plugin_read_register = symbol("qemu_plugin_read_register");
  if (engine.byte_array_new == NULL || engine.byte_array_set_size == NULL)
    return "it is linked statically; the recorder needs a qemu-aarch64 that loads plugins";
  if (guest_base != NULL && *guest_base != 0)
    return "the program's addresses are not those of the emulator";
  if (engine.plugin_read_register != NULL && engine.plugin_get_registers != NULL)
    return NULL;
  return open_by_exports();
}

bool engine_copies_registers(void) { return engine.plugin_read_register != NULL; }

static bool gdb_register(void *cpu, int number, uint64_t *value) {
  if (bytes == NULL)
    bytes = engine.byte_array_new();
  engine.byte_array_set_size(bytes, 0);
  if (engine.gdb_read_register(cpu, bytes, number) != sizeof(*value))
    return false;
  memcpy(value, bytes->data, sizeof(*value));
  return true;
}

/* The registers stand in a row, the stack pointer behind them, then the program counter. Not two
 * rows of a state can be alike: the stack pointer is no other register's. */
static const uint64_t *find_in_state(void *cpu) {
  static uint64_t state[STATE_BYTES / sizeof(uint64_t)];
  uint64_t wanted[A64_REGISTERS + 1];
  struct iovec to = {state, sizeof(state)}, from = {cpu, sizeof(state)};
  for (unsigned i = 0; i <= A64_REGISTERS; i++) {
    if (!gdb_register(cpu, (int)i, &wanted[i]))
      return NULL;
  }
  ssize_t count = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
  const uint64_t *found = NULL;
  for (size_t at = 0; at + sizeof(wanted) / 8 <= (size_t)(count < 0 ? 0 : count) / 8; at++) {
    if (memcmp(state + at, wanted, A64_REGISTERS * sizeof(uint64_t)) != 0)
      continue;
    if (found != NULL)
      return NULL;
    found = (const uint64_t *)cpu + at;
  }
  return found;
}

static void find_handles(void) {
  struct array *registers = engine.plugin_get_registers();
  for (unsigned i = 0; i < registers->length; i++) {
    const struct register_descriptor *descriptor = &registers->data[i];
    const char *name = descriptor->name;
    if (strcmp(name, "sp") == 0) {
      engine.handle[A64_STACK_POINTER] = descriptor->handle;
    } else if (strcmp(name, "pc") == 0) {
      engine.handle[GDB_PROGRAM_COUNTER] = descriptor->handle;
    } else if (name[0] == 'x' && name[1] >= '0' && name[1] <= '9') {
      unsigned number = (unsigned)(name[1] - '0');
      if (name[2] != '\0')
        number = number * 10 + (unsigned)(name[2] - '0');
      if (number < A64_STACK_POINTER)
        engine.handle[number] = descriptor->handle;
    }
  }
}

static bool plugin_register(unsigned number, uint64_t *value) {
  if (bytes == NULL)
    bytes = engine.byte_array_new();
  engine.byte_array_set_size(bytes, 0);
  if (engine.handle[number] == NULL ||
      engine.plugin_read_register(engine.handle[number], bytes) < (int)sizeof(*value))
    return false;
  memcpy(value, bytes->data, sizeof(*value));
  return true;
}

const uint64_t *engine_find_registers(unsigned vcpu) {
  static size_t offset_words; /* the same in all virtual processors */
  if (engine_copies_registers()) {
    if (engine.handle[0] == NULL)
      find_handles();
    return engine.handle[A64_STACK_POINTER] == NULL ? NULL : copied;
  }
  uint64_t *cpu = engine.get_cpu((int)vcpu);
  if (cpu == NULL)
    return NULL;
  if (offset_words == 0) {
    const uint64_t *found = find_in_state(cpu);
    if (found == NULL)
      return NULL;
    offset_words = (size_t)(found - cpu);
  }
  return cpu + offset_words;
}

void engine_copy_registers(uint32_t mask) {
  for (unsigned number = 0; mask != 0; number++, mask >>= 1) {
    if ((mask & 1) != 0)
      plugin_register(number, &copied[number]);
  }
}

uint64_t engine_program_counter(unsigned vcpu) {
  uint64_t value = 0;
  if (engine_copies_registers())
    return plugin_register(GDB_PROGRAM_COUNTER, &value) ? value : 0;
  void *cpu = engine.get_cpu((int)vcpu);
  return cpu != NULL && gdb_register(cpu, GDB_PROGRAM_COUNTER, &value) ? value : 0;
}

/* Behind all that QEMU maps for a program on a 64-bit host, and before its own. */
#define PROGRAM_END 0x550000000000ull

bool engine_knows_pages(void) { return engine.page_get_flags != NULL; }

bool engine_has_page(uint64_t address, int *protection) {
  if (engine.page_get_flags == NULL) {
    *protection = PROT_READ | PROT_WRITE | PROT_EXEC;
    return address < PROGRAM_END;
  }
  int flags = engine.page_get_flags(address);
  *protection = ((flags & PAGE_READ) != 0 ? PROT_READ : 0) |
                ((flags & (PAGE_WRITE | PAGE_WRITE_ORIGINAL)) != 0 ? PROT_WRITE : 0) |
                ((flags & PAGE_EXECUTE) != 0 ? PROT_EXEC : 0);
  return (flags & PAGE_VALID) != 0;
}

bool engine_stop_others(void) {
  if (engine.start_exclusive == NULL || engine.end_exclusive == NULL)
    return false;
  engine.start_exclusive();
  return true;
}

void engine_go_on(void) { engine.end_exclusive(); }

/* QEMU ends itself by the signal that the program has no handler for. */
static int kill_as_told(pid_t process, int signal) {
  if (process == getpid() && signal != 0)
    engine.before_death(signal);
  return kill(process, signal);
}

void engine_before_death(void (*function)(int signal)) {
  engine.before_death = function;
  engine_image_replace_import("kill", (void *)kill_as_told);
}
