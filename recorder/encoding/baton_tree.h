/* SPDX-License-Identifier: Apache-2.0 */
/* The turn of this process among those of its tree (format/tree.h), where there is one. */
#ifndef BATON_TREE_H
#define BATON_TREE_H

#include "baton.h"
#include "tree.h"

/* Whether the process takes turns with others; whether there are any now. */
bool baton_tree_is(void);
bool baton_tree_is_alone(void);

/* The process's first thread, of its first image or a later one, or of a forked child, with the
 * clock that it begins with. */
void baton_tree_join(struct baton_member *first);
void baton_tree_continue_in_child(struct baton_member *first);
/* Waits until the child takes turns, or is gone. */
void baton_tree_await_child(int32_t child);

/* A thread that waits has looked for signals; one has been sent, to `to` as the call has it, and it
 * is awaited that others see it. */
void baton_tree_looks(void);
void baton_tree_sent_signal(int32_t to);

bool baton_tree_has_turn(void);
/* Where the turn was given to it. */
uint64_t baton_tree_clock(void);
/* When another process could go on, and when it could without looking. */
uint64_t baton_tree_others_at(void);
uint64_t baton_tree_others_ready_at(void);

/* A thread runs; none can, so far as the process knows. */
void baton_tree_runs(void);
void baton_tree_asked_in_vain(void);
/* Gives the turn away, to itself perhaps, or to nobody. */
void baton_tree_pass(struct baton_member *first, uint64_t clock);
/* Without the turn: says when it could go on. */
void baton_tree_tell(struct baton_member *first);
/* Takes the turn where nobody has it. */
bool baton_tree_claim(void);
/* Since when nobody has it, by the real clock; 0: somebody has. */
uint64_t baton_tree_idle_since_ns(void);
/* Waits on this word until it is not 0. */
volatile int *baton_tree_turn(void);

/* Around a system call of who has the turn: others may take that while it takes long. Whether they
 * have. */
void baton_tree_enters_kernel(const struct thread *thread);
bool baton_tree_leaves_kernel(void);
void baton_tree_take_from_long_call(uint64_t long_ns);

#endif
