/* SPDX-License-Identifier: Apache-2.0 */
/* How a thread comes to a word for which it may wait: what it sees at its first look, and what it
 * does up to the next one. */
#ifndef WAIT_ENTRY_H
#define WAIT_ENTRY_H

#include "wait_path.h"

#include <stdbool.h>
#include <stdint.h>

struct encoder;

/* Words from one look to the next. */
#define LEAD_WORDS_MAX 512u

/* Whether the execution updates another word than this one: then it has polled nothing yet. */
bool entry_updates_another(const uint64_t *at, uint64_t address);

/* What the execution behind these notes polls; address 0 where that is nothing, or where it sees a
 * new store: then it need not wait, and should it come round again, its way there is none that
 * waiting goes. */
struct path_place entry_polled(struct encoder *encoder, const uint64_t *notes,
                               const uint64_t *execution);

/* The look at `address` among these notes; false where there is none. */
bool entry_look(const uint64_t *notes, const uint64_t *to, uint64_t address,
                struct polled_look *look);

/* The next look at the word after `at`, where not too much comes before it. */
struct next_look {
  const uint64_t *notes, *execution;
  uint64_t clock; /* of the store that it comes behind */
  uint64_t pc;    /* of what reads the word */
};
bool entry_next_look(const uint64_t *at, const uint64_t *to, uint64_t address,
                     struct next_look *next);

/* Whether the path does what only a thread does that has nothing better to do. */
bool entry_lets_time_pass(const uint64_t *from, const uint64_t *to);

#endif
