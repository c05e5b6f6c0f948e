/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of the process runs the program at a time: the one that has the baton. It goes to the
 * thread with the least estimated clock, so that the order of what threads do to memory is near to
 * that of a parallel run, and depends on nothing but the program: two recordings are equal.
 *
 * A clock counts instructions, and prices for what takes longer. The holder looks at it where
 * threads meet (atomic updates, synchronisation functions, system calls, pauses), and is made to
 * after a quantum. A thread that waits or sleeps stays in the queue; when nothing else can run, the
 * clocks jump to the first that wakes up: time is virtual. Where something outside of the process
 * may come first, they do not jump but go on as real time does. */
#ifndef BATON_H
#define BATON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread;
struct tree_waiter;

/* Of an estimated clock, in instructions. */
#define BATON_INSTRUCTIONS_PER_NS 2u
#define BATON_FOR_EVER UINT64_MAX

/* How far ahead of the thread that is furthest behind one may be. */
enum baton_lead {
  LEAD_NONE = 0,        /* at a pause or yield */
  LEAD_MEETING = 2000,  /* where threads meet */
  LEAD_QUANTUM = 20000, /* anywhere else */
};

enum baton_end { BATON_WOKEN, BATON_TIMED_OUT, BATON_INTERRUPTED };

enum baton_state {
  BATON_READY,   /* runs, or could */
  BATON_WAITS,   /* until it is woken, what it asks for is so, or until a time */
  BATON_OUTSIDE, /* in a system call that nobody can say the end of */
};

/* Whether a thread that has the baton makes a system call. Who does so for long loses it. */
enum baton_kernel { KERNEL_OUTSIDE, KERNEL_INSIDE, KERNEL_TAKES_LONG };

/* Whether what a thread waits for is so. Any thread of the process may ask. */
typedef bool baton_question(struct thread *thread);

/* What a word held when a thread read it last. */
struct watched_word {
  uint64_t address;
  uint64_t value;
  uint32_t bytes;
};

#define WATCHED_WORDS_MAX 8u

/* A thread in the queue. */
struct baton_member {
  struct thread *thread;
  struct baton_member *next; /* in the order in which they came */
  uint64_t clock;
  uint64_t counted;         /* of its instructions, what the clock has */
  uint64_t turn_began;      /* likewise, when its turn began */
  uint64_t charged;         /* what it did beside them */
  uint32_t lead_quarters;   /* of what it may be ahead in this turn, 4 where that is not drawn */
  uint64_t until;           /* where it waits */
  baton_question *is_ready; /* likewise; NULL where it has to be woken */
  uint64_t ask_at;
  bool awaits_signal; /* likewise */
  uint64_t awaited;   /* of signals (bit number - 1): those that it takes */
  enum baton_state state;
  enum baton_end end;
  volatile int kernel; /* enum baton_kernel */
  uint32_t calls;
  uint64_t asleep_since_ns; /* in a call that may block, by the real clock */
  volatile int looks;       /* times that it has looked for signals while it waits */
  uint64_t paused_at;       /* its instructions at its last pause */
  uint32_t pauses;          /* one shortly behind the other */

  /* All that it has read since it began to wait, where it did nothing else; 0: it does more. */
  uint32_t watched;
  struct watched_word watch[WATCHED_WORDS_MAX];
  bool is_watching; /* it has given the baton away while it waited so */
  bool is_called;   /* one of the words has changed, and it has not had the baton since */

  volatile int has_baton;

  /* At a futex (baton_calls.c). */
  uint64_t word; /* 0: at none */
  uint64_t arrival;
  uint32_t bitset;
  uint64_t cleared_at_end; /* the word that the kernel clears when the thread ends, or 0 */
  struct tree_waiter *shared_waiter; /* at one that processes share, or NULL */
};

/* Positions in a thread's buffer behind which it looks; instrumented code reads them. */
struct baton_limits {
  uint64_t *quantum, *meeting, *pause;
};

extern bool baton_is_passed;

void baton_init(void);

/* Whether the thread takes turns. Those of children that are not recorded do not; where the record
 * cannot go on they still do. */
bool baton_has(const struct thread *thread);

/* A new thread waits for its first turn; or it does not take part. */
void baton_join(struct thread *thread);
/* It is about to end: a word that the kernel is to clear when it is gone. */
volatile int *baton_leaves(void);
/* It has ended; the baton goes on. */
void baton_leave(struct thread *thread);
/* The caller makes a thread, of which the kernel will clear a word in memory at its end (0: none);
 * it has made one: waits until that stands in the queue. */
void baton_makes_thread(uint64_t cleared_at_end);
void baton_await_join(void);
/* Likewise a process, which takes turns where there is a tree of them. */
void baton_await_process(struct thread *thread, int32_t child);
/* In a forked child: of its threads there is this one. It waits for its first turn when all is
 * ready for that. */
void baton_continue_in_child(struct thread *thread);
void baton_await_turn_in_child(struct thread *thread);
/* Likewise, but there are no turns. */
void baton_end_in_child(struct thread *thread);

/* Whether the thread, which has the baton, should give it away; sets where it looks next. */
bool baton_is_due(struct thread *thread, enum baton_lead lead);
/* Gives the baton away and waits for the next turn. `where` is what platform_wait wants. */
void baton_hand_over(struct thread *thread, void *where);
/* Both. */
void baton_look(struct thread *thread, enum baton_lead lead);

/* Waits until woken, or until a place of its clock. */
enum baton_end baton_wait(struct thread *thread, uint64_t until);
/* Likewise until something is so. */
enum baton_end baton_await(struct thread *thread, baton_question *is_ready, uint64_t until);
/* Likewise until a signal interrupts it, or one of the set, which it blocks, is there. */
enum baton_end baton_await_signals(struct thread *thread, uint64_t set, uint64_t until);
void baton_wake(struct baton_member *member, enum baton_end end);
/* What it does takes longer than its instructions. */
void baton_charge(struct thread *thread, uint64_t instructions);

/* Around a system call that the kernel makes, with the baton; and one that may block for ever,
 * without. */
void baton_enter_kernel(struct thread *thread, bool may_block);
void baton_step_outside(struct thread *thread);
/* Behind either; in vain elsewhere. A call that its time limit ended took all of that time;
 * otherwise, beside others, the real clock says nothing. */
void baton_come_back(struct thread *thread, bool has_timed_out, void *where);
/* A handler comes before the call has ended, where nobody can wait: the thread may be without the
 * baton until it looks next. */
void baton_leave_call(struct thread *thread);
bool baton_is_away(const struct thread *thread);

/* The thread has sent a signal to one of the process, or (0) to any: it is there. */
void baton_sent_signal(struct thread *thread, uint64_t kernel_id);

uint64_t baton_clock(struct thread *thread);
struct baton_member *baton_first(void);
/* Whether no other thread takes turns, of this process or its tree. */
bool baton_is_alone(void);
/* What threads have worked, without waits: one by its kernel id, or (0) all that there have been.
 */
uint64_t baton_worked(uint64_t kernel_id);

#endif
