/* SPDX-License-Identifier: Apache-2.0 */
/* What processes of a tree share: a mapping of it is named by a number that the tree gives to what
 * is mapped, so that whoever reads the records knows which words are one. */
#ifndef SHARED_MAPPINGS_H
#define SHARED_MAPPINGS_H

#include "kernel_maps.h"
#include "thread.h"

/* Behind the event of the mapping; says nothing of one that is private, or without a tree. */
void shared_mapping_send(struct thread *thread, const struct kernel_map *map);

#endif
