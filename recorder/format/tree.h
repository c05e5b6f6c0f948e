/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a recorded tree take turns (--children): one runs at a time, the one that could
 * go on at the least estimated clock. Within a turn its threads pass the baton (encoding/baton.h).
 *
 * Each process has a place in memory that all of them and the launcher share, and says there when
 * it could go on. Who has the turn gives it to another; of a process that is gone the launcher
 * does. A lock is held for moments and within the recorder; of one that died with it the launcher
 * knows, too. */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>
#include <stdint.h>

/* Processes at the same time. */
#define TREE_PLACES_MAX 4096u
#define TREE_WAITERS_MAX 4096u
/* That processes share. */
#define TREE_OBJECTS_MAX 4096u
#define TREE_NEVER UINT64_MAX
/* In instructions: so long one runs at most until it looks whether others are there that nothing
 * was known of, or, where no process of the tree has called the kernel, that somebody outside has.
 */
#define TREE_OTHERS_COME_AFTER 1280000u

/* Whether who has the turn makes a system call that may be taken for long. */
enum tree_kernel { TREE_OUTSIDE_KERNEL, TREE_IN_KERNEL, TREE_TURN_IS_TAKEN };

/* When a process could go on, by the estimated clock. */
struct tree_times {
  uint64_t ready_at;
  uint64_t ask_at; /* it wants to look whether what a thread waits for is so */
  uint64_t until;  /* a thread waits no longer than this */
};

struct tree_place {
  int32_t process;  /* kernel id; 0: the place is free */
  int32_t has_turn; /* a futex */
  int32_t kernel;   /* enum tree_kernel */
  uint32_t calls;   /* that it has made with the turn */
  uint32_t looks;   /* that a thread of it has waited, and looked for signals */
  int32_t parent;   /* kernel id */
  struct tree_times times;
  uint64_t asked;        /* calls of the tree when it looked last */
  uint32_t has_asked;    /* in vain, since a thread of the tree ran */
  uint32_t meets_others; /* something that is not recorded may let a thread of it go on */
};

/* A thread that waits at a futex in memory that processes share. */
struct tree_waiter {
  uint64_t device, inode, offset;
  uint64_t arrival;
  int32_t process; /* 0: none */
  uint32_t bitset;
  uint32_t is_woken;
};

/* Something of which parts are mapped shared: a file, or memory. */
struct tree_object {
  uint64_t device, inode;
};

struct tree {
  int32_t lock;    /* process_lock.h */
  uint32_t joined; /* processes that have had a place; a futex */
  uint32_t count;  /* places in use */
  uint32_t used;   /* and how far */
  int32_t holder;  /* number of the place that has the turn, from 1; 0: all wait */
  uint64_t clock;  /* of who gave the turn last */
  uint64_t calls;  /* that have been made */
  uint64_t arrivals;
  uint64_t idle_since_ns; /* by the real clock */
  /* The holder that a waiting thread has found in the kernel. */
  int32_t seen;
  uint32_t seen_in_call;
  uint64_t seen_since_ns;
  struct tree_place place[TREE_PLACES_MAX];
  struct tree_waiter waiter[TREE_WAITERS_MAX];
  uint32_t objects;
  struct tree_object object[TREE_OBJECTS_MAX]; /* in the order in which they were met */
};

void tree_lock(struct tree *tree, int32_t process);
void tree_unlock(struct tree *tree);

/* A place for the process; NULL where there is none. */
struct tree_place *tree_join(struct tree *tree, int32_t process, int32_t parent,
                             struct tree_times times);
/* A signal is there for the process, which waits: until it has seen that, or probably has not to.
 */
void tree_await_look(struct tree *tree, int32_t process);
/* The process is gone. */
void tree_end(struct tree *tree, int32_t process);

/* --- with the lock --- */

/* When another process than that of the place could go on at the earliest, and when without having
 * to look. */
uint64_t tree_others_at(const struct tree *tree, const struct tree_place *own);
uint64_t tree_others_ready_at(const struct tree *tree, const struct tree_place *own);

/* Gives the turn, which the place has, to the process that could go on first; where none is ready,
 * to one that has not looked in vain; then, unless something that is not recorded may come first,
 * to the one whose time-out is first. False where all wait: nobody has the turn. */
bool tree_pass(struct tree *tree, struct tree_place *own, uint64_t clock);
/* Takes the turn that nobody has. */
bool tree_claim(struct tree *tree, struct tree_place *own);
/* A thread of the place runs. */
void tree_runs(struct tree *tree);
/* Takes the turn from a process that has been seen in the same system call for so long. */
void tree_take_from_long_call(struct tree *tree, uint64_t long_ns);

uint64_t tree_real_ns(void);

#endif
