/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the program: QEMU runs each in a thread of its own, so the one that calls is found in
 * thread-local storage. */
#ifndef GUEST_H
#define GUEST_H

#include "a64.h"
#include "thread.h"

#include <stdbool.h>
#include <stdint.h>

/* These functions call each other a few levels deep, again in each handler that interrupts one.
 * Deeper calls are not told of. */
#define OPEN_CALLS_MAX 64u
/* No instruction's: they are aligned. */
#define NO_ADDRESS 1u

/* A call of a synchronisation function that has not returned. */
struct open_call {
  const struct function *function;
  uint64_t return_address;
  uint64_t stack_pointer;
};

struct guest {
  uint64_t *position; /* of the next execution, in the thread's buffer */
  const uint64_t *registers;
  uint64_t returns_to;                  /* where the innermost open call does, or NO_ADDRESS */
  const struct watched_access *watched; /* that it makes now; NULL for none (watched_accesses.c) */
  struct thread thread;
  uint64_t status_before[2]; /* of a compare-and-swap: what it compares with */
  struct guest *next;
  unsigned vcpu;
  uint64_t kernel_id;
  uint64_t thread_pointer; /* TPIDR_EL0 */
  uint32_t open_calls;
  struct open_call open_call[OPEN_CALLS_MAX];
  bool has_asked_to_end; /* the process */
  uint32_t is_busy;      /* in the recorder, outside of the program's code */
};

extern __thread struct guest *the_guest __attribute__((tls_model("initial-exec")));

/* Before the first instruction of the caller. */
struct guest *guest_begin(unsigned vcpu);
/* The caller is about to end. */
void guest_end(void);
/* In a forked child: the others are gone. */
void guests_after_fork(void);

/* The process ends: so do all threads, of which none executes code any more. */
void guests_end_all(void);

/* Calls `visit` for each but the caller. */
void guests_visit_others(void (*visit)(struct thread *thread));

/* A thread that the caller makes begins with this stack pointer and thread pointer. */
void guest_is_created(uint64_t stack_pointer, uint64_t thread_pointer);

/* What the C library calls its thread. */
uint64_t guest_thread_handle(const struct guest *guest);
/* How far below the thread pointer it begins, as the C library itself says. */
void guest_handles_are_below(uint64_t bytes);

static inline struct guest *guest_of(const struct thread *thread) {
  return (struct guest *)((char *)thread - offsetof(struct guest, thread));
}

static inline uint64_t guest_register(const struct guest *guest, unsigned number) {
  return guest->registers[number];
}

/* Where registers are copied: those of the mask are wanted. */
void guest_wants_registers(const struct guest *guest, uint32_t mask);

/* A call of the recorder that is not made by the program's code: while one goes on, the process's
 * end waits. */
bool guest_enters(struct guest *guest);
void guest_leaves(struct guest *guest);

#endif
