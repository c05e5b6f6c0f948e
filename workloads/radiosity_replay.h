// SPDX-License-Identifier: Apache-2.0
//
// The radiosity example once more, from the model to the answer and in the plainest way: one
// thread, nothing persistent, nothing kept twice, and every ray tried against every patch.
#ifndef RADIOSITY_REPLAY_H
#define RADIOSITY_REPLAY_H

#include "radiosity_mesh.h"

struct replay_list {
  struct interaction *items;
  size_t count, capacity;
};

struct replay {
  struct mesh mesh;          // without a tree
  struct replay_list *lists; // by element
  double transport_max;
  uint32_t iteration;
};

static inline void *replay_memory(void *memory) {
  if (memory == NULL) {
    perror("no memory for the check");
    exit(EXIT_FAILURE);
  }
  return memory;
}

static inline void append(struct replay_list *list, const struct interaction *interaction) {
  if (list->count == list->capacity) {
    list->capacity = 2 * list->capacity + 16;
    list->items = replay_memory(realloc(list->items, list->capacity * sizeof *list->items));
  }
  list->items[list->count++] = *interaction;
}

static inline void replay_divide(struct replay *replay, element_index element) {
  if (is_divided(&replay->mesh, element))
    return;
  make_quarters(&replay->mesh, element, replay->iteration);
  replay->mesh.elements[element].divided_in = replay->iteration;
}

static inline void replay_refine(struct replay *replay, element_index receiver,
                                 const struct interaction *interaction, struct replay_list *kept,
                                 struct replay_list *rest) {
  enum refinement refinement =
      refinement_of(&replay->mesh, receiver, interaction, replay->transport_max, replay->iteration);
  if (refinement == ACCURATE)
    append(kept, interaction);
  if (refinement == DIVIDE_RECEIVER)
    append(rest, interaction);
  if (refinement != DIVIDE_SOURCE)
    return;
  replay_divide(replay, interaction->source);
  for (unsigned i = 0; i < QUARTERS; i++) {
    element_index source = first_quarter(&replay->mesh, interaction->source) + i;
    struct interaction part = estimate(&replay->mesh, receiver, source);
    replay_refine(replay, receiver, &part, kept, rest);
  }
}

static inline void replay_gather(struct replay *replay, element_index index,
                                 const struct replay_list *from_above) {
  struct replay_list kept = {0}, rest = {0}, *list = &replay->lists[index];
  for (size_t i = 0; i < from_above->count; i++) {
    struct interaction part = estimate(&replay->mesh, index, from_above->items[i].source);
    replay_refine(replay, index, &part, &kept, &rest);
  }
  for (size_t i = 0; i < list->count; i++)
    replay_refine(replay, index, &list->items[i], &kept, &rest);
  free(list->items);
  *list = kept;
  struct element *element = &replay->mesh.elements[index];
  element->gathered = 0;
  for (size_t i = 0; i < kept.count; i++)
    element->gathered += transported(&replay->mesh, &kept.items[i], replay->iteration);
  if (rest.count > 0)
    replay_divide(replay, index);
  for (unsigned i = 0; i < QUARTERS && is_divided(&replay->mesh, index); i++)
    replay_gather(replay, first_quarter(&replay->mesh, index) + i, &rest);
  free(rest.items);
}

static inline double replay_average(struct replay *replay, element_index index, double incident) {
  struct element *element = &replay->mesh.elements[index];
  const struct patch *patch = &replay->mesh.patch[element->patch];
  double radiosity = 0;
  incident += element->gathered;
  for (unsigned i = 0; i < QUARTERS && is_divided(&replay->mesh, index); i++)
    radiosity += replay_average(replay, first_quarter(&replay->mesh, index) + i, incident);
  radiosity = is_divided(&replay->mesh, index) ? radiosity / QUARTERS
                                               : patch->emission + patch->reflectance * incident;
  return element->radiosity[replay->iteration % 2] = radiosity;
}

// Makes planes, undivided elements and their interactions.
static inline struct replay replay_begin(const struct mesh *mesh, const struct model *model,
                                         double transport_max) {
  size_t elements = mesh->first_element[model->count];
  struct replay replay = {.mesh = *mesh, .transport_max = transport_max};
  replay.mesh.patch = model->patches;
  replay.mesh.space = (struct space){.patches = model->patches};
  replay.mesh.elements =
      replay_memory(aligned_alloc(LINE_BYTES, elements * sizeof *replay.mesh.elements));
  memset(replay.mesh.elements, 0, elements * sizeof *replay.mesh.elements);
  replay.lists = replay_memory(calloc(elements, sizeof *replay.lists));
  for (uint32_t patch = 0; patch < model->count; patch++) {
    make_plane(&model->patches[patch]);
    make_root(&replay.mesh, patch);
  }
  for (uint32_t patch = 0; patch < model->count; patch++)
    for (uint32_t other = 0; other < model->count; other++)
      if (other != patch && are_facing(&model->patches[patch], &model->patches[other])) {
        element_index root = mesh->first_element[patch];
        struct interaction interaction = estimate(&replay.mesh, root, mesh->first_element[other]);
        append(&replay.lists[root], &interaction);
      }
  return replay;
}

// Whether the mesh has, after the given number of iterations, each element and each radiosity that
// it should, to the last bit, and was not yet done before.
static inline bool is_replayed(const struct mesh *mesh, const struct model *model,
                               uint32_t iterations, double transport_max, double change_max) {
  struct replay replay = replay_begin(mesh, model, transport_max);
  const struct replay_list nothing = {0};
  bool is_same = true;
  for (replay.iteration = 1; replay.iteration <= iterations; replay.iteration++) {
    for (uint32_t patch = 0; patch < model->count; patch++)
      replay_gather(&replay, mesh->first_element[patch], &nothing);
    for (uint32_t patch = 0; patch < model->count; patch++)
      replay_average(&replay, mesh->first_element[patch], 0);
    bool is_last = replay.iteration == iterations;
    is_same &= is_converged(&replay.mesh, replay.iteration, change_max) == is_last;
  }
  for (element_index index = 0; index < mesh->first_element[model->count]; index++) {
    const struct element *own = &replay.mesh.elements[index], *other = &mesh->elements[index];
    is_same &= is_divided(&replay.mesh, index) == is_divided(mesh, index);
    is_same &= own->radiosity[iterations % 2] == other->radiosity[iterations % 2];
    free(replay.lists[index].items);
  }
  free(replay.lists);
  free(replay.mesh.elements);
  return is_same;
}

#endif
