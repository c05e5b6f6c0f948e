/* SPDX-License-Identifier: Apache-2.0 */
/* The path that a thread has taken, as its raw words tell it: where a round ends, where a loop was
 * left, what the thread updated before. */
#ifndef WAIT_PATH_H
#define WAIT_PATH_H

#include "code_table.h"
#include "raw_words.h"
#include "wait_slice.h"

#include <stdint.h>

/* Of a longer round too much would have to be kept until its end is seen. */
#define ROUND_WORDS_MAX 8192

/* Which store to a polled word a read has come behind; 0 for none of another thread. */
struct polled_look {
  uint64_t address, clock;
  bool only_reads; /* by an instruction behind which threads do not take the lock that it may be */
  uint8_t lends;   /* how many of its last locks the thread would give back to look again */
};

/* A word that an instruction updates, by reading and writing it. */
struct path_place {
  uint64_t address, pc;
};

enum path_round {
  ROUND_ENDS,    /* the next one begins at `end` */
  ROUND_GOES_ON, /* behind what there is */
  ROUND_LEAVES,  /* this is none: it does something that waiting does not */
};

enum path_exit_how {
  EXIT_BY_BRANCH,       /* from block `from` to block `to`, behind `end` */
  EXIT_INTO_WAIT,       /* the thread blocks at `object` */
  EXIT_BY_INTERRUPTION, /* a signal */
  EXIT_NOT_TAKEN,       /* the loop goes on, with more interruptions than can be kept */
  EXIT_UNKNOWN,
};

struct path_exit {
  enum path_exit_how how;
  uint32_t from, to;
  const uint64_t *end;
  uint64_t object;
  bool is_at_end; /* unknown only because the words end */
  uint32_t passed;
};

/* Words up to the next step of the path: a call of a synchronisation function is one, of which its
 * event is all that counts. Up to `to` where the call goes on behind it. */
size_t path_step(const uint64_t *at, const uint64_t *to);
/* Whether two steps are the same again; places in the process clock do not count. */
bool path_steps_are_equal(const uint64_t *one, const uint64_t *other, const uint64_t *other_end);
/* Whether it only says which stores to polled words were seen or made. */
bool path_is_note(const uint64_t *at);
const uint64_t *path_behind_notes(const uint64_t *at, const uint64_t *to);
/* Whether an execution on the path was interrupted. */
bool path_has_interruption(const uint64_t *from, const uint64_t *to);
bool path_look(const uint64_t *at, struct polled_look *look);
/* How many locks the thread takes from `at` to `to`, less those that it gives back. */
int path_locks_taken(const uint64_t *at, const uint64_t *to);

static inline uint64_t path_slot_value(const struct slot *slot, const uint64_t *words) {
  return words[slot->raw] + (uint64_t)slot->displacement;
}

/* With what a round begins: an execution equal to this one, or, where the word is known that is
 * polled, one whose read of it is the same instruction (blocks may begin at several places before
 * it). */
struct path_head {
  const uint64_t *words;
  uint32_t count;
  struct path_place polled; /* address 0: not known */
};

/* The instruction of the execution at `at` that reads `address`; address 0 where none does. */
struct path_place path_read_of(const uint64_t *at, uint64_t address);

/* The round that begins at `at` with such an execution, notes before it. */
enum path_round path_round(const struct own_range own[2], const struct path_head *head,
                           const uint64_t *at, const uint64_t *to, const uint64_t **end);

/* The first way from one block to another of the path at `at`, and the next one. */
void path_find_exit(const uint64_t *at, const uint64_t *to, struct path_exit *exit);
void path_next_edge(const uint64_t *to, struct path_exit *exit);

/* Whether the thread that leaves the loop at `at` blocks at a word soon, and at which one (0:
 * none); unknown where the words end before it does anything else. */
struct path_sleep {
  uint64_t object;
  bool is_unknown;
};
void path_find_sleep(const uint64_t *at, const uint64_t *to, struct path_sleep *sleep);

/* A store is an update only of what was among so many reads before. */
#define LOADS_KEPT 16u

/* The word that the thread updated last on its way up to `at`, not its own; 0 where there is none.
 * Goes on from where it came to: a thread may come to many loops on its way. */
struct path_updates {
  const uint64_t *at;
  struct path_place last;
  uint64_t loaded[LOADS_KEPT]; /* a store to one of these is an update, too */
  uint32_t loads;
};
void path_updates_up_to(const struct own_range own[2], struct path_updates *updates,
                        const uint64_t *to);

#endif
