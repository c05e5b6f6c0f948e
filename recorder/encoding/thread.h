/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded thread: its buffer of raw words, which instrumented code fills, and what becomes of
 * them. Behind the buffer lies a page that cannot be written: the store that meets it is how a full
 * buffer is noticed, at no cost for all others. */
#ifndef THREAD_H
#define THREAD_H

#include "baton.h"
#include "call_path.h"
#include "encoder.h"
#include "held_locks.h"
#include "value_queue.h"
#include "write_order.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Words of one execution at most: what may have to be moved when the buffer is full. */
#define EXECUTION_WORDS_MAX 4096u

#define CALL_ARGUMENTS 4
#define SUSPENDED_CALLS_MAX 16u

/* A call of a synchronisation function (synchronisation.c). */
struct call {
  const struct function *function;
  uint64_t stack_pointer;
  uint64_t return_address;
  uint64_t argument[CALL_ARGUMENTS];
  uint64_t clock;
  uint64_t generation;
  uint32_t participants;
  uint32_t created; /* the thread that a pthread_create has made */
  struct call_inside inside;
};

#define SYSTEM_CALL_ARGUMENTS 6

/* A system call, between the engine's two events for it (system_calls.c). */
struct system_call {
  int number; /* the program's instruction set's, as it goes to the record */
  int x86_64; /* what the call is, by its number there (instruction_set.h) */
  uint64_t argument[SYSTEM_CALL_ARGUMENTS];
  uint64_t clock; /* taken before the call, where that is its place */
  uint64_t flags; /* of a clone; of an ftruncate the file's size before it */
  int64_t tried;  /* the result of making it without waiting (ipc_calls.c) */
};

/* A wait for signals, which is made in turns (../client/signal_waits.h). */
struct signal_wait {
  bool is_made;
  uint64_t set; /* of signals, as the kernel has it */
  uint64_t kernel_set;
  uint64_t program_set; /* addresses that the program passed */
  uint64_t program_limit;
  uint64_t siginfo;
  int64_t end_ns; /* by the monotonic clock */
  struct timespec turn;
};

/* A call that transfers a buffer, and may be made again for the rest (../client/whole_transfers.h).
 */
struct transfer {
  bool is_made;
  int number;
  uint64_t descriptor, buffer, bytes, flags; /* as the program passed them */
  uint64_t done;                             /* bytes, before the call for the rest */
};

/* What a synchronisation function wrote to selected memory (values.c). */
#define CALL_WRITES_MAX 32u

struct call_write {
  uint64_t address;
  uint64_t bytes;
};

struct suspended_call {
  uint32_t depth;
  struct call call;
};

/* What happens to its buffer: who kills the process may do so at any moment (killed_process.h). */
enum thread_phase { THREAD_RUNS, THREAD_ENCODES, THREAD_MOVES };

struct thread {
  uint32_t id;
  int32_t process;     /* that it runs in */
  bool is_recorded;    /* false in children that are not, and when the recording has stopped */
  bool is_known;       /* its start is in the record */
  void *engine_thread; /* what the engine calls it */
  uint64_t *buffer;
  uint64_t *guard;             /* its end */
  volatile int phase;          /* enum thread_phase */
  uint64_t **position;         /* where the next execution goes; instrumented code advances it */
  struct baton_limits *limits; /* instrumented code compares the position with them */
  struct baton_member member;

  /* Inside a synchronisation function: where it was called. What was recorded since then is looked
   * at when the call returns (call_path.h). */
  uint64_t *call_position;
  uint32_t call_depth;
  struct call call;                                     /* the outermost */
  struct suspended_call suspended[SUSPENDED_CALLS_MAX]; /* one per signal handler that runs */
  uint32_t suspended_count;
  uint64_t *path; /* room for the inside of a call; NULL before the first */
  uint64_t stack_low, stack_high;
  uint64_t pointer; /* the C library's thread pointer; 0 before it was needed */

  struct held_locks held;
  struct system_call system_call; /* the one that is being made */
  struct signal_wait signal_wait; /* the one that is being made */
  struct transfer transfer;       /* likewise */

  struct value_queue values; /* of executions that are not encoded yet */
  struct call_write call_write[CALL_WRITES_MAX];
  uint32_t call_writes;

  struct write_order order;

  struct encoder encoder;
};

/* A thread begins, in memory of the recorder's, before its first instruction; instrumented code has
 * the position at `position`, and looks at `limits`. True where its mappings were sent: it is the
 * first of the program. */
bool thread_begin(struct thread *thread, void *engine_thread, uint64_t **position,
                  struct baton_limits *limits);
/* It ends, by itself or with the process. */
void thread_end(struct thread *thread);

/* Whether its calls are followed: it is recorded, or may be later. */
bool thread_is_followed(const struct thread *thread);
/* From the holder of the baton, of a thread of which nothing was recorded. */
void thread_is_recorded_from_here(struct thread *thread);

/* In a forked child that is recorded: this thread, its only one, begins anew. */
void thread_continue_in_child(struct thread *thread);

/* Encodes what stands in the buffer between `from` and `end`, but for an execution that does not
 * end there; returns where it stopped. */
const uint64_t *thread_encode(struct thread *thread, const uint64_t *from, const uint64_t *end);

/* Appends an event; `fields` as they stand in the record, behind the clock. */
void thread_event(struct thread *thread, uint8_t type, const uint8_t *fields, size_t field_bytes);
void thread_event_clocked(struct thread *thread, uint8_t type, uint64_t clock,
                          const uint8_t *fields, size_t field_bytes);

/* Appends whole records, at most CALL_WORDS_MAX words. */
void thread_append(struct thread *thread, const uint64_t *words, size_t count);

/* The C library's thread pointer: its pthread_t. */
uint64_t thread_pointer(struct thread *thread);

/* Encodes what the buffer holds and makes room. Moves the position by a whole number of words,
 * down; returns by how many. What is being written at the position moves with it. */
size_t thread_drain(struct thread *thread);

/* Likewise, but only what stands before `end`, where the execution begins that is going on. */
size_t thread_drain_before(struct thread *thread, const uint64_t *end);

/* Everything up to here goes to the record, in frames of its own. */
void thread_flush(struct thread *thread);

#endif
