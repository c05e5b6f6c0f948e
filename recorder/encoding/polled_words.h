/* SPDX-License-Identifier: Apache-2.0 */
/* Words of memory by which threads wait for each other without a call: those that a loop which
 * waited has polled, or that an instruction has read which may wait by its code. Each store to one
 * has a place in the process clock, and each read by an instruction that polls finds out which
 * store it comes behind.
 *
 * A table of bytes, one for each value of an address's lower 16 bits, says quickly that a store is
 * to none of them. */
#ifndef POLLED_WORDS_H
#define POLLED_WORDS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* A thread's looks at polled words since its last store to one, as many as may come between a look
 * at a lock and taking it. */
#define LOOKS_KEPT_OF_THREAD 8u

struct kept_look {
  struct polled_word *word;
  uint64_t pc;    /* of the load; 0: an update that changed nothing */
  bool saw_taken; /* another thread had it by an update and had not given it back */
  bool saw_given; /* somebody had it before and has given it back */
};

/* A thread's own notes. */
struct polling {
  uint64_t updated_word;                       /* the polled word that it updated last, */
  uint64_t updated_clock;                      /* and where in the process clock */
  uint64_t held_lock;                          /* the word by which it has got a lock; 0 for none */
  bool has_looked;                             /* since it has taken that lock, at any word */
  struct kept_look look[LOOKS_KEPT_OF_THREAD]; /* the last one first */
  uint32_t looks;
  struct polled_word *stored; /* a store to it, or a look, is under way: it is this thread's */
  uint64_t held_value;        /* that it had before, */
  uint32_t held_bytes;        /* of so many bytes */
  uint8_t held_kind;          /* of the instruction that stores or updates: enum site_kind */
};

/* Whether stores are looked at: from the second thread on. */
extern bool polled_words_are_watched;

/* Before a system call that makes a thread. What of the program has been instrumented is
 * forgotten. */
void polled_words_begin(void);
/* In a forked child: nobody has stored yet. */
void polled_words_after_fork(void);

/* A loop has waited for `address`, which the instruction at `pc` reads while the thread has so many
 * locks that each round takes and gives back. */
void polled_word_add(uint64_t address, uint64_t pc, uint32_t locks);
/* The thread updated `address` last before it began to wait. */
void polled_word_add_entry(uint64_t address);

/* What an instruction is by its code, before anybody has waited there: a set. */
enum site_kind {
  SITE_POLLS = 1,        /* a loop repeats it until the word that it reads has changed */
  SITE_TAKES_LOCK = 2,   /* likewise, and it takes a lock by changing the word */
  SITE_COUNTS = 4,       /* arrives at a counter, which says whether the thread polls next */
  SITE_TAKES_TURN = 8,   /* takes a turn at a lock that is handed on */
  SITE_AWAITS_TURN = 16, /* polls for that turn */
  SITE_SETS_UP = 32,     /* stores to what the thread will poll for its turn */
  SITE_READS = 64, /* has read a lock that was free, and the thread did not take it: learned */
};

/* The instruction at `pc` is of this kind. It is about to be instrumented; where it may have been,
 * its code is made anew. */
void polled_words_expect(uint64_t pc, uint8_t kind, bool may_be_instrumented);

/* How many instructions have turned out to poll, or to store where others poll. */
uint32_t polled_words_learned(void);

/* Whether a loop has waited for the word. */
bool polled_word_has_waited(uint64_t address);

/* The place of the word's last store, if another thread than this one has made it; else 0. */
uint64_t polled_word_last_store(uint64_t address, uint32_t thread);

/* Whether several threads have polled the word, or stored to it. */
bool polled_word_is_shared(uint64_t address);

/* Whether threads use the word as a lock, or to hand one on: who comes first gets it. */
bool polled_word_is_lock(uint64_t address);
/* Whether it is a lock whose holder has changed this very word. */
bool polled_word_is_own_lock(uint64_t address);

/* Whether the instruction at `pc` is known to poll, or to store where others poll. What
 * instrumented code does for it depends on that: where it is known, it calls before each store and
 * update and behind each store, update and load; else before what the filter does not exclude, and
 * behind updates. The filter has a byte for each value of an address's lower 16 bits, not 0 where
 * it may be a polled word's. */
bool polled_words_know(uint64_t pc);
#define POLLED_WORDS_FILTER_BYTES (1u << 16)
const uint8_t *polled_words_filter(void);

/* An execution of block `id`, the last in the thread's buffer, is about to store by this
 * instruction at `pc`; polled_words_end follows behind it. */
void polled_words_before_store(struct thread *thread, uint32_t id, uint32_t instruction,
                               uint64_t pc);
/* Likewise for one that reads a word and changes it in one step. */
void polled_words_before_update(struct thread *thread, uint32_t id, uint32_t instruction,
                                uint64_t pc);
void polled_words_after_update(struct thread *thread, uint32_t id);
/* It has read by this instruction, which is known to poll. */
void polled_words_after_load(struct thread *thread, uint32_t id, uint32_t instruction);

/* Makes the code anew of instructions that have turned out to store or poll. To be called where the
 * engine allows it: from instrumented code, and where a signal has come. */
void polled_words_renew_code(void);

/* The store that was announced last has happened, or will not. */
void polled_words_end(struct thread *thread);

#endif
