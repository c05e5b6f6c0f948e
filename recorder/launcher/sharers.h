/* SPDX-License-Identifier: Apache-2.0 */
/* Who is not recorded and may store to memory that a recorded process shares: processes outside,
 * and children that have no record. Nothing in a record says what they store. */
#ifndef SHARERS_H
#define SHARERS_H

#include "control_area.h"

#define SHARERS_MAX 16u

struct sharers {
  unsigned count;
  char name[SHARERS_MAX][CONTROL_NAME_BYTES]; /* each once */
};

/* Looks for them from now on. */
void sharers_watch(const struct control_area *control);

/* Those that were found, at the end; says who they are. */
void sharers_find(struct sharers *sharers);

#endif
