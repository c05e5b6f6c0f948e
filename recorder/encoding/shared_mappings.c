/* SPDX-License-Identifier: Apache-2.0 */
#include "shared_mappings.h"

#include "fields.h"
#include "record_format.h"
#include "recording.h"

/* The number of what is mapped, or how many there are at most where there are too many. */
static uint32_t object_of(const struct kernel_map *map) {
  struct tree *tree = recording.tree;
  uint64_t device = kernel_map_device(map);
  tree_lock(tree, recording.process);
  uint32_t number = 0;
  while (number < tree->objects &&
         (tree->object[number].device != device || tree->object[number].inode != map->inode))
    number++;
  if (number == tree->objects && number < TREE_OBJECTS_MAX)
    tree->object[tree->objects++] = (struct tree_object){device, map->inode};
  tree_unlock(tree);
  return number;
}

void shared_mapping_send(struct thread *thread, const struct kernel_map *map) {
  if (recording.tree == NULL || !map->is_shared)
    return;
  struct fields fields;
  fields_begin(&fields);
  uint32_t object = object_of(map);
  if (object == TREE_OBJECTS_MAX) {
    fields_number(&fields, 1);
    fields_send(&fields, thread, EVENT_DROPPED_EDGES);
    return;
  }
  fields_number(&fields, map->start);
  fields_number(&fields, map->end - map->start);
  fields_number(&fields, object);
  fields_number(&fields, map->offset);
  fields_send_clocked(&fields, thread, EVENT_SHARED_MAPPING, clock_advance());
}
