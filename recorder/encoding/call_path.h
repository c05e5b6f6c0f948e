/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a synchronisation function: what the thread executes between call and return. Work
 * is the path on which it does not have to wait. A call that had to wait, or that another thread
 * got in the way of, has in its place the path of an earlier call of the same function that did
 * not; where none is known, what it executed without its waiting. So a record does not depend on
 * how often threads met. */
#ifndef CALL_PATH_H
#define CALL_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread;

/* The shortest paths known of one function: one for each kind of object, and of each one for calls
 * that change the object by a locked instruction and one for calls that do not (those by which the
 * owner of a recursive mutex takes it once more). */
#define KNOWN_PATHS 16u

struct known_paths {
  const struct known_path *path[KNOWN_PATHS];
};

/* What the thread has executed of a call that goes on (thread.h: from call_position on). */
struct call_inside {
  bool is_cut;       /* something of it is missing */
  bool meets_others; /* it woke a thread, or waited for something that is not its purpose */
  bool always_waits; /* at its object: then that is its purpose */
  uint32_t objects;  /* how many of its arguments are */
  uint32_t object_kind;
  size_t
      wait_first; /* end of the first execution that waits, in words from its start; 0: none does */
  size_t wait_last;
};

/* The inside of a call that has returned, apart from the thread's buffer. */
struct call_path {
  const uint64_t *words;
  size_t before; /* words before the place of the wait; all where it did not wait */
  size_t after;  /* words behind that */
};

void call_paths_init(void);
void call_paths_exit(void);
/* In a forked child: whoever held the lock is gone. */
void call_paths_after_fork(void);

/* Its first `objects` arguments are objects; of the first one, `kind_at` is where a word says its
 * kind, 0 where none does. */
void call_path_begin(struct thread *thread, uint32_t objects, uint32_t kind_at, bool always_waits);

/* The call makes a futex system call, which waits at `word` or wakes somebody there. */
void call_path_futex(struct thread *thread, uint64_t word, bool waits);

/* The call has returned: takes its inside out of the buffer. `known` are the paths of its function,
 * NULL where each call's own path is taken. Mapping changes made inside stay in the buffer, or
 * where they were in the path. The words are valid until the thread's next call. */
struct call_path call_path_take(struct thread *thread, struct known_paths *known);

/* Takes all executions of the inside so far out of the buffer. Other events stay. */
void call_path_drop(struct thread *thread);

/* Takes executions out of the middle of an inside that is too long. What the thread executes stays
 * at the end. */
void call_path_shorten(struct thread *thread, const uint64_t *end);

/* The longest inside that is kept in the buffer. */
#define CALL_WORDS_MAX (16u * 1024)

#endif
