/* SPDX-License-Identifier: Apache-2.0 */
/* What the recorder's encoding asks of an engine, without one: its platform is the C library. */
#ifndef ENCODING_PLATFORM_H
#define ENCODING_PLATFORM_H

#include "control_area.h"
#include "instruction_set.h"
#include "platform.h"
#include "recording.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static struct thread the_thread;

void platform_fail(const char *why) {
  fprintf(stderr, "%s\n", why);
  abort();
}
void *platform_allocate(size_t bytes) { return malloc(bytes); }
void platform_free(void *memory, size_t bytes) { (void)bytes, free(memory); }
size_t platform_page_bytes(void) { return 4096; }
void *platform_map_pages(size_t bytes) {
  void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? NULL : pages;
}
void *platform_map_low_pages(size_t bytes) { return platform_map_pages(bytes); }
void platform_unmap_pages(void *pages, size_t bytes) { munmap(pages, bytes); }
void platform_guard_pages(void *pages, size_t bytes) { mprotect(pages, bytes, PROT_NONE); }
bool platform_read(const void *from, size_t bytes, void *to, size_t *read) {
  struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
  ssize_t count = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  *read = count < 0 ? 0 : (size_t)count;
  return *read == bytes;
}
bool platform_owns(const void *address) { return (void)address, false; }
void platform_complete_mapping(struct kernel_map *map) { (void)map; }
void platform_narrow_mapping(uint64_t address, uint64_t *start, uint64_t *end) {
  (void)address, (void)start, (void)end;
}
void platform_keep_mapped(uint64_t start, uint64_t end) { (void)start, (void)end; }
void *platform_mutex_create(void) {
  pthread_mutex_t *mutex = malloc(sizeof(*mutex));
  pthread_mutex_init(mutex, NULL);
  return mutex;
}
void platform_mutex_destroy(void *mutex) { free(mutex); }
void platform_mutex_lock(void *mutex) { pthread_mutex_lock(mutex); }
void platform_mutex_unlock(void *mutex) { pthread_mutex_unlock(mutex); }
int platform_open_to_read(const char *path) { return open(path, O_RDONLY); }
int platform_open_to_append(const char *path) { return open(path, O_WRONLY | O_APPEND); }
int platform_open_to_keep(const char *path) { return open(path, O_RDONLY); }
ptrdiff_t platform_read_file(int file, void *bytes, size_t count) {
  return read(file, bytes, count);
}
ptrdiff_t platform_write_file(int file, const void *bytes, size_t count) {
  ssize_t written = write(file, bytes, count);
  return written < 0 ? -errno : written;
}
void platform_close_file(int file) { close(file); }
void *platform_map_file(const char *path, size_t *bytes) {
  int file = open(path, O_RDWR);
  void *start = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return start == MAP_FAILED ? NULL : start;
}
void platform_unmap_file(void *start, size_t bytes) { munmap(start, bytes); }
bool platform_is_caller(const struct thread *thread) { return thread == &the_thread; }
uint64_t platform_kernel_thread_id(const struct thread *thread) { return (void)thread, 4711; }
uint64_t platform_stack_pointer(const struct thread *thread) { return (uintptr_t)thread; }
uint64_t platform_first_stack_pointer(void) { return (uintptr_t)&the_thread; }
uint64_t platform_thread_pointer(const struct thread *thread) { return (uintptr_t)thread; }
/* Here no threads take turns. */
bool platform_write(uint64_t to, const void *bytes, size_t count) {
  (void)to, (void)bytes, (void)count;
  return false;
}

bool platform_wait(volatile int *word, int value, uint32_t time_ms, void *where) {
  (void)word, (void)value, (void)time_ms, (void)where;
  return false;
}

void platform_wake(volatile int *word) { (void)word; }

void platform_yield(void) { sched_yield(); }
void platform_sleep_ms(uint32_t time_ms) { usleep(time_ms * 1000); }
void platform_visit_stopped_threads(void (*visit)(struct thread *thread)) { (void)visit; }
const char *platform_program_name(void) { return "alone"; }
void platform_program_path(char *path, size_t capacity) { snprintf(path, capacity, "/alone"); }
void platform_visit_modules(void (*visit)(const struct loaded_module *module, void *user_data),
                            void *user_data) {
  (void)visit, (void)user_data;
}

/* Of an instruction set that nobody knows, on Linux as x86-64 has it. */
static int same_call(int number) { return number; }
static bool is_never_one_step(const uint8_t *code, uint32_t bytes) {
  return (void)code, (void)bytes, false;
}
const struct instruction_set instruction_set = {
    .x86_64_call = same_call, .updates_in_one_step = is_never_one_step, .epoll_event_bytes = 12};

/* The launcher's part: the control area of a recording with children, of which this is one. */
static bool open_recording(const char *prefix, bool has_tree) {
  static char path[CONTROL_PATH_BYTES];
  snprintf(path, sizeof(path), "%s.control", prefix);
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, sizeof(struct control_area)) != 0)
    return false;
  size_t bytes = sizeof(struct control_area);
  struct control_area *area = platform_map_file(path, &bytes);
  close(file);
  area->magic = CONTROL_MAGIC;
  snprintf(area->isa, sizeof(area->isa), "nobody's");
  snprintf(area->engine, sizeof(area->engine), "none");
  area->children = area->processes = 1;
  area->has_tree = has_tree;
  snprintf(area->child_prefix, sizeof(area->child_prefix), "%s", prefix);
  snprintf(area->child_suffix, sizeof(area->child_suffix), ".fencepost");
  return recording_open("/nowhere/recorder", path);
}

#endif
