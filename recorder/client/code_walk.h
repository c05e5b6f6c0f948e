/* SPDX-License-Identifier: Apache-2.0 */
/* Walks along the program's code before it is executed, with symbols for values, and stops where
 * somebody has to decide how to go on. */
#ifndef CODE_WALK_H
#define CODE_WALK_H

#include "dr_api.h"
#include "register_set.h"
#include "symbolic_state.h"

#include <stdbool.h>
#include <stdint.h>

/* On one path; longer ones are not followed. */
#define WALK_BRANCHES_MAX 6u
/* How often a path may come to the same branch. */
#define WALK_PASSES_MAX 2u
#define WALK_INSTRUCTIONS_MAX 64u
#define WALK_STORES_MAX 8u

enum walk_stop {
  STOP_AT_TARGET,
  STOP_AT_BRANCH, /* which depends on flags */
  STOP_AT_LOOK,   /* before an instruction that reads what others may have stored */
  STOP_ELSEWHERE, /* nobody knows where the code goes on, or it does what it must not do */
};

struct walk_branch {
  app_pc pc, taken, not_taken;
};

/* Stores to other memory than the stack frame, on a path. */
struct walk_stores {
  struct {
    app_pc pc;
    struct symbol address;
  } store[WALK_STORES_MAX];
  uint32_t count;
};

/* Other instructions that read the word behind a branch that depends on it. */
#define WALK_LOOKS_MAX 4u

struct code_walk {
  void *drcontext;
  instr_t instr;  /* the one that was looked at last */
  app_pc next;    /* behind it */
  uint32_t steps; /* instructions that may be looked at */
  app_pc target;  /* where to stop */
  /* What is read at this address is of this origin. */
  struct symbol word;
  enum symbol_origin origin;
  /* Any store may be made, and is noted here; NULL: only those of a thread that waits. */
  struct walk_stores *stores;
  bool stops_at_looks;
  app_pc look_again[WALK_LOOKS_MAX];
  uint32_t looks_again;
  register_set written; /* on the way */
  uint64_t addresses;   /* a digest of what has been read on the way, but for the stack frame */
};

void code_walk_begin(struct code_walk *walk, void *drcontext, uint32_t steps);
void code_walk_end(struct code_walk *walk);

/* Decodes the instruction at `pc`; false where there is none, or it has been enough. */
bool code_walk_decode(struct code_walk *walk, app_pc pc);

/* Goes on from `*pc` to where the path may stop; not right there where it `begins`. */
enum walk_stop code_walk_go(struct code_walk *walk, struct symbolic_state *state, app_pc *pc,
                            bool begins, struct walk_branch *branch);

/* Whether the instruction may look at a word that other threads may have stored to; where. */
bool may_look(instr_t *instr, opnd_t *look);
/* Whether it may take a lock by changing what it looks at. */
bool may_take_lock(instr_t *instr);
/* Whether it reads and writes memory in one step. */
bool is_atomic_update(instr_t *instr);
/* What such an update writes, where it does not add to what was there; false where it does. */
bool written_by_update(const struct symbolic_state *state, instr_t *instr, struct symbol *written);

/* Whether the value that it leaves is made of the one that it finds at the word that is looked at.
 * One that is to be what was read, or else something new, is as a maximum is kept. */
bool update_computes(const struct symbolic_state *state, instr_t *instr);

#endif
