/* SPDX-License-Identifier: Apache-2.0 */
/* What the encoding needs of the engine, by DynamoRIO. */
#include "platform.h"

#include "dr_api.h"

#include "initial_stack.h"
#include "module_events.h"
#include "raw_system_call.h"
#include "threads.h"
#include "withheld_calls.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

/* The engine's (engine/patches/waits_for_blocked_signals.patch, without_the_kernel.patch). */
extern int dr_take_blocked_signal(void *drcontext, uint64_t set, void *siginfo);
extern bool dr_has_blocked_signal(void *drcontext, uint64_t set);
extern bool dr_begin_wait_with_mask(void *drcontext, uint64_t set, bool adds);
extern void dr_end_wait_with_mask(void *drcontext, bool by_signal);

void platform_fail(const char *why) {
  dr_fprintf(STDERR, "fencepost: recorder: %s\n", why);
  dr_abort();
  __builtin_unreachable();
}

void *platform_allocate(size_t bytes) { return dr_global_alloc(bytes); }

void platform_free(void *memory, size_t bytes) { dr_global_free(memory, bytes); }

size_t platform_page_bytes(void) { return dr_page_size(); }

void *platform_map_pages(size_t bytes) {
  return dr_raw_mem_alloc(bytes, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
}

void *platform_map_low_pages(size_t bytes) {
  for (ptr_uint_t hint = 0x10000000; hint < 0x70000000; hint += 0x1000000) {
    void *pages = dr_raw_mem_alloc(bytes, DR_MEMPROT_READ | DR_MEMPROT_WRITE, (void *)hint);
    if (pages != NULL && (ptr_uint_t)pages < 0x7f000000)
      return pages;
    if (pages != NULL)
      dr_raw_mem_free(pages, bytes);
  }
  return NULL;
}

void platform_unmap_pages(void *pages, size_t bytes) { dr_raw_mem_free(pages, bytes); }

void platform_guard_pages(void *pages, size_t bytes) {
  dr_memory_protect(pages, bytes, DR_MEMPROT_NONE);
}

bool platform_read(const void *from, size_t bytes, void *to, size_t *read) {
  return dr_safe_read(from, bytes, to, read);
}

bool platform_write(uint64_t to, const void *bytes, size_t count) {
  size_t written;
  return dr_safe_write((void *)(ptr_uint_t)to, count, bytes, &written) && written == count;
}

bool platform_owns(const void *address) {
  byte *at = (byte *)(ptr_uint_t)address;
  return dr_memory_is_dr_internal(at) || dr_memory_is_in_client(at);
}

/* The engine leaves the program the mappings that the kernel made for it. */
void platform_complete_mapping(struct kernel_map *map) {}

/* Stacks have guard pages between them and, as a rule, the program's other mappings elsewhere. */
void platform_narrow_mapping(uint64_t address, uint64_t *start, uint64_t *end) {}

void platform_keep_mapped(uint64_t start, uint64_t end) { withheld_calls_protect(start, end); }

void *platform_mutex_create(void) { return dr_mutex_create(); }

void platform_mutex_destroy(void *mutex) { dr_mutex_destroy(mutex); }

void platform_mutex_lock(void *mutex) { dr_mutex_lock(mutex); }

void platform_mutex_unlock(void *mutex) { dr_mutex_unlock(mutex); }

int platform_open_to_read(const char *path) { return dr_open_file(path, DR_FILE_READ); }

int platform_open_to_append(const char *path) { return dr_open_file(path, DR_FILE_WRITE_APPEND); }

int platform_open_to_keep(const char *path) { return dr_open_file(path, DR_FILE_READ); }

ptrdiff_t platform_read_file(int file, void *bytes, size_t count) {
  return dr_read_file(file, bytes, count);
}

ptrdiff_t platform_write_file(int file, const void *bytes, size_t count) {
  return dr_write_file(file, bytes, count);
}

void platform_close_file(int file) { dr_close_file(file); }

void *platform_map_file(const char *path, size_t *bytes) {
  file_t file = dr_open_file(path, DR_FILE_READ | DR_FILE_WRITE_APPEND);
  if (file == INVALID_FILE)
    return NULL;
  void *start = dr_map_file(file, bytes, 0, NULL, DR_MEMPROT_READ | DR_MEMPROT_WRITE, 0);
  dr_close_file(file);
  return start;
}

void platform_unmap_file(void *start, size_t bytes) { dr_unmap_file(start, bytes); }

bool platform_is_caller(const struct thread *thread) {
  return thread->engine_thread == dr_get_current_drcontext();
}

uint64_t platform_kernel_thread_id(const struct thread *thread) {
  return (uint64_t)dr_get_thread_id(thread->engine_thread);
}

uint64_t platform_stack_pointer(const struct thread *thread) {
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_CONTROL};
  dr_get_mcontext(thread->engine_thread, &context);
  return context.xsp;
}

uint64_t platform_first_stack_pointer(void) { return initial_stack_pointer(); }

/* It leads to itself at this place. */
uint64_t platform_thread_pointer(const struct thread *thread) {
  uint64_t pointer;
  dr_switch_to_app_state(thread->engine_thread);
  __asm__ volatile("mov %%fs:16, %0" : "=r"(pointer));
  dr_switch_to_dr_state(thread->engine_thread);
  return pointer;
}

bool platform_wait(volatile int *word, int value, uint32_t time_ms, void *where) {
  return dr_app_wait(word, value, (int)time_ms, where);
}

void platform_wake(volatile int *word) {
  raw_system_call(SYS_futex, (uintptr_t)word, FUTEX_WAKE, INT32_MAX);
}

bool platform_begin_signal_mask(uint64_t set, bool adds) {
  return dr_begin_wait_with_mask(dr_get_current_drcontext(), set, adds);
}

void platform_end_signal_mask(bool by_signal) {
  dr_end_wait_with_mask(dr_get_current_drcontext(), by_signal);
}

bool platform_has_blocked_signal(const struct thread *thread, uint64_t set) {
  return dr_has_blocked_signal(thread->engine_thread, set);
}

int platform_take_blocked_signal(uint64_t set, void *information) {
  return dr_take_blocked_signal(dr_get_current_drcontext(), set, information);
}

void platform_yield(void) { dr_thread_yield(); }

void platform_sleep_ms(uint32_t time_ms) { dr_sleep((int)time_ms); }

void platform_visit_stopped_threads(void (*visit)(struct thread *thread)) {
  void **contexts;
  uint count, unsuspended;
  if (!dr_suspend_all_other_threads(&contexts, &count, &unsuspended))
    return;
  for (uint i = 0; i < count; i++) {
    struct thread *other = thread_of(contexts[i]);
    if (other != NULL)
      visit(other);
  }
  dr_resume_all_other_threads(contexts, count);
}

const char *platform_program_name(void) { return dr_get_application_name(); }

void platform_program_path(char *path, size_t capacity) {
  module_data_t *program = dr_get_main_module();
  path[0] = '\0';
  if (program == NULL)
    return;
  if (program->full_path != NULL && strlen(program->full_path) < capacity)
    memcpy(path, program->full_path, strlen(program->full_path) + 1);
  dr_free_module_data(program);
}

void platform_visit_modules(void (*visit)(const struct loaded_module *module, void *user_data),
                            void *user_data) {
  dr_module_iterator_t *modules = dr_module_iterator_start();
  while (dr_module_iterator_hasnext(modules)) {
    module_data_t *module = dr_module_iterator_next(modules);
    struct loaded_module described = module_describe(module);
    visit(&described, user_data);
    dr_free_module_data(module);
  }
  dr_module_iterator_stop(modules);
}
