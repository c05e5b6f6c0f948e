/* SPDX-License-Identifier: Apache-2.0 */
/* What the encoding needs of the engine, by QEMU. The recorder is a library in the emulator's
 * process, so memory, locks and files are those of its C library. The program's addresses are the
 * emulator's own (engine.c refuses what else there is). */
#include "platform.h"

#include "engine.h"
#include "guest.h"
#include "guest_mappings.h"
#include "guest_modules.h"
#include "kernel_maps.h"
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
/* Descriptors below belong to the program: half of those that a process is allowed by default. */
#define DESCRIPTORS_OF_PROGRAM 512

void platform_fail(const char *why) {
  fprintf(stderr, "fencepost: recorder: %s\n", why);
  abort();
}

static void *checked(void *memory) {
  require(memory != NULL, "out of memory");
  return memory;
}

void *platform_allocate(size_t bytes) { return checked(malloc(bytes)); }

void platform_free(void *memory, size_t bytes) {
  (void)bytes;
  free(memory);
}

size_t platform_page_bytes(void) { return PAGE_BYTES; }

void *platform_map_pages(size_t bytes) {
  void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? NULL : pages;
}

/* Nothing here reaches it by a displacement. */
void *platform_map_low_pages(size_t bytes) { return platform_map_pages(bytes); }

void platform_unmap_pages(void *pages, size_t bytes) { munmap(pages, bytes); }

void platform_guard_pages(void *pages, size_t bytes) { mprotect(pages, bytes, PROT_NONE); }

/* Whether all of it lies in pages that the program can read. */
static bool is_readable(uint64_t start, size_t bytes) {
  int protection;
  if (!engine_knows_pages())
    return false;
  for (uint64_t page = start / PAGE_BYTES; page <= (start + bytes - 1) / PAGE_BYTES; page++) {
    if (!engine_has_page(page * PAGE_BYTES, &protection) || (protection & PROT_READ) == 0)
      return false;
  }
  return true;
}

/* What is asked for on each call of a synchronisation function is a word or two. */
#define COPIED_BYTES_MAX 64u

bool platform_read(const void *from, size_t bytes, void *to, size_t *read) {
  uint64_t start = (uint64_t)(uintptr_t)from;
  if (bytes != 0 && bytes <= COPIED_BYTES_MAX && is_readable(start, bytes)) {
    memcpy(to, from, bytes);
    *read = bytes;
    return true;
  }
  struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
  ssize_t count = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  *read = count < 0 ? 0 : (size_t)count;
  return *read == bytes;
}

bool platform_owns(const void *address) {
  int protection;
  return !engine_has_page((uint64_t)(uintptr_t)address, &protection);
}

/* QEMU gives a program nothing that lies in its own mappings. */
void platform_keep_mapped(uint64_t start, uint64_t end) { (void)start, (void)end; }

void *platform_mutex_create(void) {
  pthread_mutex_t *mutex = platform_allocate(sizeof(*mutex));
  pthread_mutex_init(mutex, NULL);
  return mutex;
}

void platform_mutex_destroy(void *mutex) { free(mutex); }

void platform_mutex_lock(void *mutex) { pthread_mutex_lock(mutex); }

void platform_mutex_unlock(void *mutex) { pthread_mutex_unlock(mutex); }

/* The program's descriptors are ours, too: it gets the lowest, so we take others. */
static int out_of_the_way(int file) {
  int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, DESCRIPTORS_OF_PROGRAM);
  if (moved < 0)
    return file;
  close(file);
  return moved;
}

int platform_open_to_read(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

int platform_open_to_append(const char *path) {
  return out_of_the_way(open(path, O_WRONLY | O_APPEND | O_CLOEXEC));
}

int platform_open_to_keep(const char *path) {
  return out_of_the_way(open(path, O_RDONLY | O_CLOEXEC));
}

ptrdiff_t platform_read_file(int file, void *bytes, size_t count) {
  return read(file, bytes, count);
}

/* The program has closed all descriptors that there may be. The record has this one again; false
 * where that is impossible. */
static bool open_record_again(int file) {
  char path[RECORD_PATH_BYTES];
  recording_path(path);
  int opened = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  bool is_open = opened >= 0 && dup3(opened, file, O_CLOEXEC) == file;
  if (opened >= 0)
    close(opened);
  errno = EBADF;
  return is_open;
}

ptrdiff_t platform_write_file(int file, const void *bytes, size_t count) {
  ssize_t written;
  bool is_open = true;
  do {
    written = write(file, bytes, count);
    if (written < 0 && errno == EBADF)
      is_open = open_record_again(file);
  } while (written < 0 && (errno == EINTR || (errno == EBADF && is_open)));
  return written < 0 ? -errno : written;
}

void platform_close_file(int file) { close(file); }

void *platform_map_file(const char *path, size_t *bytes) {
  struct stat status;
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return NULL;
  void *start = MAP_FAILED;
  if (fstat(file, &status) == 0)
    start = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (start == MAP_FAILED)
    return NULL;
  *bytes = (size_t)status.st_size;
  return start;
}

void platform_unmap_file(void *start, size_t bytes) { munmap(start, bytes); }

bool platform_is_caller(const struct thread *thread) {
  return the_guest != NULL && thread == &the_guest->thread;
}

uint64_t platform_kernel_thread_id(const struct thread *thread) {
  return guest_of(thread)->kernel_id;
}

uint64_t platform_stack_pointer(const struct thread *thread) {
  const struct guest *guest = guest_of(thread);
  guest_wants_registers(guest, 1u << A64_STACK_POINTER);
  return guest_register(guest, A64_STACK_POINTER);
}

static uint64_t first_stack_pointer;

uint64_t platform_first_stack_pointer(void) {
  if (the_guest != NULL && first_stack_pointer == 0)
    first_stack_pointer = platform_stack_pointer(&the_guest->thread);
  return first_stack_pointer;
}

/* The emulator's pages of the program's code cannot be executed, and are written behind its back.
 */
void platform_complete_mapping(struct kernel_map *map) {
  int protection;
  if (engine_knows_pages() && engine_has_page(map->start, &protection))
    map->protection = (uint8_t)(((protection & PROT_READ) != 0 ? 1 : 0) |
                                ((protection & PROT_WRITE) != 0 ? 2 : 0) |
                                ((protection & PROT_EXEC) != 0 ? 4 : 0));
  uint64_t stack_pointer = platform_first_stack_pointer();
  if (map->name[0] == '\0' && stack_pointer >= map->start && stack_pointer < map->end)
    strcpy(map->name, "[stack]");
}

void platform_narrow_mapping(uint64_t address, uint64_t *start, uint64_t *end) {
  guest_mapping_narrow(address, start, end);
}

uint64_t platform_thread_pointer(const struct thread *thread) {
  return guest_thread_handle(guest_of(thread));
}

bool platform_wait(volatile int *word, int value, uint32_t time_ms, void *where) {
  (void)word, (void)value, (void)time_ms, (void)where;
  return false;
}

bool platform_write(uint64_t to, const void *bytes, size_t count) {
  (void)to, (void)bytes, (void)count;
  return false;
}

void platform_wake(volatile int *word) { (void)word; }

bool platform_begin_signal_mask(uint64_t set, bool adds) {
  (void)set, (void)adds;
  return false;
}

void platform_end_signal_mask(bool by_signal) { (void)by_signal; }

bool platform_has_blocked_signal(const struct thread *thread, uint64_t set) {
  (void)thread, (void)set;
  return false;
}

int platform_take_blocked_signal(uint64_t set, void *information) {
  (void)set, (void)information;
  return 0;
}

void platform_yield(void) { sched_yield(); }

void platform_sleep_ms(uint32_t time_ms) {
  nanosleep(&(struct timespec){.tv_sec = time_ms / 1000, .tv_nsec = time_ms % 1000 * 1000000},
            NULL);
}

void platform_visit_stopped_threads(void (*visit)(struct thread *thread)) {
  if (!engine_stop_others())
    return;
  guests_visit_others(visit);
  engine_go_on();
}

const char *platform_program_name(void) {
  const char *slash = strrchr(guest_program_path(), '/');
  return slash == NULL ? "" : slash + 1;
}

void platform_program_path(char *path, size_t capacity) {
  path[0] = '\0';
  if (strlen(guest_program_path()) < capacity)
    strcpy(path, guest_program_path());
}

void platform_visit_modules(void (*visit)(const struct loaded_module *module, void *user_data),
                            void *user_data) {
  guest_modules_each(visit, user_data);
}
