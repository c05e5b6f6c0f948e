/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the baton share: its state, and how it changes. Nobody else includes this. */
#ifndef BATON_MEMBERS_H
#define BATON_MEMBERS_H

#include "baton.h"

/* How often a thread that waits looks for signals. */
#define SIGNAL_LOOK_MS 10

struct baton_turns {
  void *lock;
  struct baton_member *first;
  struct baton_member
      *holder;             /* NULL where all wait, or another process of the tree has the turn */
  volatile int joined;     /* threads that have come */
  int made;                /* that were to come */
  uint64_t cleared_at_end; /* of the one that comes next */
  uint64_t worked_by_ended;
  uint64_t draws;
  volatile int leaving; /* one that ends is not gone; the kernel clears it */

  /* While all wait: who looks whether somebody can go on, and when that began. */
  struct baton_member *lookout;
  uint64_t idle_clock, idle_since_ns;
  bool has_said_stuck;

  /* The holder that a waiting thread has found in the kernel. */
  const struct baton_member *in_kernel;
  uint32_t in_call;
  uint64_t in_call_since_ns;
};

extern struct baton_turns baton;

void baton_lock(void);
void baton_unlock(void);

/* --- with the lock --- */

/* The thread runs. */
void baton_give(struct baton_member *member);
/* Who has the baton gives it away. */
void baton_pass_from(struct baton_member *member);
/* None of the process can go on, or another process has the turn. */
void baton_begin_idling(uint64_t now);
/* Whether something that is not recorded may come before the time for which all wait. */
bool baton_meets_others(void);
/* Somebody more can run: the holder, who may have had nobody to look for, looks soon. */
void baton_look_soon(void);

/* --- without it, by the thread --- */

/* Waits for the baton, and for a thread that ends to be gone. */
void baton_await_turn(struct thread *thread, void *where);
void baton_await_gone(void *where);
void baton_begin_turn(struct thread *thread);

#endif
