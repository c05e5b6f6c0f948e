/* SPDX-License-Identifier: Apache-2.0 */
/* Who is next of the threads that take turns: the one with the least estimated clock that can run,
 * or whose time has come, or for which what it asks for is so. `first` is the first in the queue.
 */
#ifndef BATON_QUEUE_H
#define BATON_QUEUE_H

#include "baton.h"

/* The place of its clock from which it could go on. */
uint64_t baton_queue_ready_at(const struct baton_member *member);

/* Who is next, `except` apart; NULL where nobody can run. What members ask for that are behind
 * `now` is looked at. */
struct baton_member *baton_queue_next(struct baton_member *first, const struct baton_member *except,
                                      uint64_t now);

/* Those whose words have changed need not wait until they would have looked again. */
void baton_queue_call_watchers(struct baton_member *first, uint64_t now);
bool baton_queue_has_watchers(const struct baton_member *first);

struct baton_member *baton_queue_first_ready(struct baton_member *first);
struct baton_member *baton_queue_first_waiting(struct baton_member *first);
struct baton_member *baton_queue_first_timed(struct baton_member *first);

/* Who can go on although none is ready at `now`: what it asks for is so, or it waits until `time`
 * at the latest. */
struct baton_member *baton_queue_next_waiting(struct baton_member *first, uint64_t now,
                                              uint64_t time);

/* How far ahead the thread may be in this turn, and where threads meet; after how many instructions
 * it will be further ahead of `next` than that. */
uint64_t baton_queue_lead(const struct baton_member *member, uint64_t lead);
uint64_t baton_queue_meeting_lead(const struct baton_member *member);
uint64_t baton_queue_until_meeting(const struct baton_member *member, uint64_t next);

#endif
