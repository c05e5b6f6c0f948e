/* SPDX-License-Identifier: Apache-2.0 */
/* Where in its buffer the thread that has the baton looks next. */
#ifndef BATON_LIMITS_H
#define BATON_LIMITS_H

#include "baton.h"

/* By who is next, NULL for nobody; `first` is the first in the queue. */
void baton_set_limits(struct thread *thread, const struct baton_member *first,
                      const struct baton_member *next);
void baton_set_no_limits(struct thread *thread);
/* As soon as it can. */
void baton_look_at_once(struct thread *thread);
/* The position in its buffer has been set back, and all that is compared with it; `is_lost` where
 * what it did is not counted otherwise. */
void baton_moved(struct thread *thread, ptrdiff_t words, bool is_lost);

#endif
