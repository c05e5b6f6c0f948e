/* SPDX-License-Identifier: Apache-2.0 */
/* What the encoding needs of the engine that runs the program. Each recorder implements it in one
 * file (client/platform.c is DynamoRIO's) and calls the encoding from its instrumentation. All of
 * it may be called in any thread of the program, at any instruction: an implementation must not use
 * the program's C library. */
#ifndef PLATFORM_H
#define PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_map;
struct thread;

/* Ends the process with `why`: what only a fault of the recorder can bring about. */
_Noreturn void platform_fail(const char *why);

#define require(condition, why) ((condition) ? (void)0 : platform_fail(why))

/* Memory. Small pieces, never NULL; and whole zeroed pages, NULL where there are none. */
void *platform_allocate(size_t bytes);
void platform_free(void *memory, size_t bytes);
size_t platform_page_bytes(void);
void *platform_map_pages(size_t bytes);
/* Likewise, but within the first 2 GiB, where instrumented code reaches them by a displacement. */
void *platform_map_low_pages(size_t bytes);
void platform_unmap_pages(void *pages, size_t bytes);
/* From now on nobody can read or write them. */
void platform_guard_pages(void *pages, size_t bytes);

/* Copies memory of the program, where nothing may be mapped. Whether all of it could be read;
 * `read` is how much was. */
bool platform_read(const void *from, size_t bytes, void *to, size_t *read);
/* Writes memory of the program, likewise; whether all of it could be written. */
bool platform_write(uint64_t to, const void *bytes, size_t count);
/* Whether the engine, or the recorder within it, has this memory. */
bool platform_owns(const void *address);
/* A mapping as /proc/self/maps has it: what that does not say of the program's, which an engine may
 * keep under no name. */
void platform_complete_mapping(struct kernel_map *map);
/* Narrows a mapping, as the kernel shows it, to the one that the program has made around the
 * address: neighbours are shown as one. */
void platform_narrow_mapping(uint64_t address, uint64_t *start, uint64_t *end);
/* The program must not change the mappings in [start, end): they are the recorder's for good. */
void platform_keep_mapped(uint64_t start, uint64_t end);

void *platform_mutex_create(void);
void platform_mutex_destroy(void *mutex);
void platform_mutex_lock(void *mutex);
void platform_mutex_unlock(void *mutex);

/* Files, by descriptors that the program cannot close; negative where they cannot be opened. */
int platform_open_to_read(const char *path);
int platform_open_to_append(const char *path);
int platform_open_to_keep(const char *path); /* to read, for as long as the image lasts */
ptrdiff_t platform_read_file(int file, void *bytes, size_t count);
ptrdiff_t platform_write_file(int file, const void *bytes, size_t count); /* or a negative errno */
void platform_close_file(int file);
/* Maps a whole file, shared; NULL where it cannot. `bytes` is what is wanted, then what there is.
 */
void *platform_map_file(const char *path, size_t *bytes);
void platform_unmap_file(void *start, size_t bytes);

/* The recorded thread that calls. */
bool platform_is_caller(const struct thread *thread);
uint64_t platform_kernel_thread_id(const struct thread *thread);
uint64_t platform_stack_pointer(const struct thread *thread);
/* That of the program's first thread before its first instruction; 0 where it is not known. */
uint64_t platform_first_stack_pointer(void);
/* The C library's thread pointer: its pthread_t. Of the caller only. */
uint64_t platform_thread_pointer(const struct thread *thread);
/* Waits while the futex `word` is `value`, for at most `time_ms` (0: without a limit), or until a
 * signal; may return early. Meanwhile the engine may stop the thread, and take it away: to `where`,
 * the program's state in instrumented code, or, where that is NULL, to nowhere. Whether a signal of
 * the program's is there for it. */
bool platform_wait(volatile int *word, int value, uint32_t time_ms, void *where);
void platform_wake(volatile int *word);
/* The calling thread waits with this mask of signals (bit number - 1), or with its own and these,
 * until the end. Whether one ends the wait at once; where one has, its handler is to run with the
 * mask. */
bool platform_begin_signal_mask(uint64_t set, bool adds);
void platform_end_signal_mask(bool by_signal);
/* A signal of the set that the thread blocks: whether there is one; takes it for the caller: its
 * number, or 0. */
bool platform_has_blocked_signal(const struct thread *thread, uint64_t set);
int platform_take_blocked_signal(uint64_t set, void *information);
void platform_yield(void);
void platform_sleep_ms(uint32_t time_ms);
/* Calls `visit` for each other thread while they all stand still. */
void platform_visit_stopped_threads(void (*visit)(struct thread *thread));

/* The program: the name of its file without folders, and the file's path, "" where unknown. */
const char *platform_program_name(void);
void platform_program_path(char *path, size_t capacity);

/* Files of code that are loaded. `linked_at` is where the file says that it begins. */
struct loaded_module {
  uint64_t start, end;
  uint64_t linked_at;
  const char *path; /* or a name; NULL where it has none */
};
void platform_visit_modules(void (*visit)(const struct loaded_module *module, void *user_data),
                            void *user_data);

#endif
