// SPDX-License-Identifier: Apache-2.0
//
// The mesh of the radiosity example: elements, into which patches are divided by quarters, and the
// interactions between them, with estimates of form factor and visibility.
#ifndef RADIOSITY_MESH_H
#define RADIOSITY_MESH_H

#include <math.h>
#include <stdatomic.h>

#include "radiosity_room.h"

// Every element that a patch may ever be divided into has its place in the pool, so that dividing
// one twice writes the same bytes to the same place: the four quarters of the patch's element i are
// its elements 4 i + 1 to 4 i + 4.
typedef uint32_t element_index;

enum { QUARTERS = 4 };

struct interaction {
  element_index source;
  float visibility;   // of the source, as the fraction of rays that get through
  double form_factor; // of what leaves the receiver, what reaches the source if nothing blocks it
};

enum { LINE_INTERACTIONS = LINE_BYTES / sizeof(struct interaction) };

// Interactions of one receiver, in one piece that begins at a line; never changed, only replaced.
struct list {
  uint32_t first, count;
};

// Two lines. Iteration i reads side (i - 1) % 2 of what there is twice and writes side i % 2.
struct element {
  alignas(LINE_BYTES) struct vector corner;
  double scale; // its sides are those of the patch times this
  double area;
  uint32_t patch;
  alignas(LINE_BYTES) double radiosity[2];
  double gathered; // in this iteration
  struct list lists[2];
  struct list handed_down;                   // from the element of which this is a quarter
  uint32_t handed_down_in;                   // iteration
  _Atomic uint32_t divided_in;               // iteration; 0: it is not divided
  _Atomic uint32_t gathered_in, averaged_in; // iterations, of use only when regions are elements
};

_Static_assert(sizeof(struct element) == 2 * LINE_BYTES, "the state of an element is one line");

struct mesh {
  struct space space;
  uint32_t patches;
  // In the pool:
  struct patch *patch;
  struct element *elements;
  struct interaction *interactions;
  // Volatile:
  element_index first_element[PATCHES_MAX + 1];
};

// How many elements a patch may become if none is to be smaller than `area_min`.
static inline element_index element_capacity(double area, double area_min) {
  element_index level = 1, capacity = 1;
  for (; area / QUARTERS >= area_min; area /= QUARTERS) {
    level *= QUARTERS;
    capacity += level;
  }
  return capacity;
}

static inline element_index first_quarter(const struct mesh *mesh, element_index element) {
  element_index first = mesh->first_element[mesh->elements[element].patch];
  return first + QUARTERS * (element - first) + 1;
}

static inline bool is_divisible(const struct mesh *mesh, element_index element) {
  return first_quarter(mesh, element) < mesh->first_element[mesh->elements[element].patch + 1];
}

static inline bool is_divided(const struct mesh *mesh, element_index element) {
  return atomic_load_explicit(&mesh->elements[element].divided_in, memory_order_acquire) != 0;
}

struct shape {
  struct vector corner;
  double scale;
};

// A quarter of a parallelogram or triangle. The triangle in the middle of one is turned around.
static inline struct shape quarter_of(const struct patch *patch, struct shape shape, unsigned i) {
  double half = shape.scale / 2;
  if (i == 1 || i == 3)
    shape.corner = sum(shape.corner, scaled(patch->sides[0], half));
  if (i == 2 || i == 3)
    shape.corner = sum(shape.corner, scaled(patch->sides[1], half));
  shape.scale = i == 3 && patch->corners == TRIANGLE ? -half : half;
  return shape;
}

static inline struct vector centre_of(const struct patch *patch, struct shape shape) {
  struct vector diagonal = sum(patch->sides[0], patch->sides[1]);
  return sum(shape.corner, scaled(diagonal, shape.scale / (patch->corners == TRIANGLE ? 3 : 2)));
}

// The undivided patch as an element, with its first radiosity.
static inline void make_root(const struct mesh *mesh, uint32_t patch) {
  const struct patch *shape = &mesh->patch[patch];
  struct element *root = &mesh->elements[mesh->first_element[patch]];
  root->corner = shape->corner;
  root->scale = 1;
  root->area = patch_area(shape);
  root->patch = patch;
  root->radiosity[0] = shape->emission;
}

// Makes the quarters of an element; they begin with its radiosity of the iteration before.
static inline void make_quarters(const struct mesh *mesh, element_index element,
                                 uint32_t iteration) {
  const struct element *whole = &mesh->elements[element];
  const struct patch *patch = &mesh->patch[whole->patch];
  element_index first = first_quarter(mesh, element);
  unsigned before = (iteration - 1) % 2;
  for (unsigned i = 0; i < QUARTERS; i++) {
    struct element *quarter = &mesh->elements[first + i];
    struct shape shape = quarter_of(patch, (struct shape){whole->corner, whole->scale}, i);
    quarter->corner = shape.corner;
    quarter->scale = shape.scale;
    quarter->area = whole->area / QUARTERS;
    quarter->patch = whole->patch;
    quarter->radiosity[before] = whole->radiosity[before];
  }
}

// Whether there is a part of each patch from which a part of the other can be seen, but for what
// stands between them.
static inline bool are_facing(const struct patch *a, const struct patch *b) {
  bool is_b_in_front = false, is_a_in_front = false;
  for (unsigned i = 0; i < b->corners; i++)
    is_b_in_front |= height_above(a, patch_corner(b, i)) > thickness;
  for (unsigned i = 0; i < a->corners; i++)
    is_a_in_front |= height_above(b, patch_corner(a, i)) > thickness;
  return is_b_in_front && is_a_in_front;
}

// Estimates what the receiver gets of the source, between the centres of the quarters of both: the
// form factor from all pairs, where a quarter of the source counts as a disc that faces the
// receiver, and the visibility from one ray for each quarter.
static inline struct interaction estimate(const struct mesh *mesh, element_index receiver,
                                          element_index source) {
  const struct element *to = &mesh->elements[receiver], *from = &mesh->elements[source];
  const struct patch *to_patch = &mesh->patch[to->patch], *from_patch = &mesh->patch[from->patch];
  struct vector ends[QUARTERS], starts[QUARTERS];
  for (unsigned i = 0; i < QUARTERS; i++) {
    struct shape shape = {to->corner, to->scale}, other = {from->corner, from->scale};
    starts[i] = centre_of(to_patch, quarter_of(to_patch, shape, i));
    ends[i] = centre_of(from_patch, quarter_of(from_patch, other, i));
  }
  struct interaction interaction = {.source = source};
  double disc = from->area / QUARTERS;
  for (unsigned i = 0; i < QUARTERS; i++)
    for (unsigned j = 0; j < QUARTERS; j++) {
      struct ray ray = {starts[i], difference(ends[j], starts[i]), {to->patch, from->patch}};
      double leaving = dot(to_patch->normal, ray.direction);
      double arriving = -dot(from_patch->normal, ray.direction);
      if (leaving <= 0 || arriving <= 0)
        continue;
      double square = dot(ray.direction, ray.direction);
      interaction.form_factor += leaving * arriving / (square * (M_PI * square + disc));
      if (i + j == QUARTERS - 1 && !is_ray_blocked(&mesh->space, mesh->patches, &ray))
        interaction.visibility += 1.0f / QUARTERS;
    }
  interaction.form_factor *= disc / QUARTERS;
  return interaction;
}

// The radiosity that the receiver gets through an interaction, before it reflects a part of it.
static inline double transported(const struct mesh *mesh, const struct interaction *interaction,
                                 uint32_t iteration) {
  return interaction->form_factor * interaction->visibility *
         mesh->elements[interaction->source].radiosity[(iteration - 1) % 2];
}

// Which of the two elements is to be divided if an interaction carries more than `transport_max`.
enum refinement { ACCURATE, DIVIDE_SOURCE, DIVIDE_RECEIVER };

static inline enum refinement refinement_of(const struct mesh *mesh, element_index receiver,
                                            const struct interaction *interaction,
                                            double transport_max, uint32_t iteration) {
  if (transported(mesh, interaction, iteration) <= transport_max)
    return ACCURATE;
  bool is_source_larger = mesh->elements[interaction->source].area >= mesh->elements[receiver].area;
  if (is_divisible(mesh, interaction->source) &&
      (is_source_larger || !is_divisible(mesh, receiver)))
    return DIVIDE_SOURCE;
  return is_divisible(mesh, receiver) ? DIVIDE_RECEIVER : ACCURATE;
}

// What leaves all patches together, after the given iteration.
static inline double total_energy(const struct mesh *mesh, uint32_t iteration) {
  double energy = 0;
  for (uint32_t patch = 0; patch < mesh->patches; patch++) {
    const struct element *root = &mesh->elements[mesh->first_element[patch]];
    energy += root->area * root->radiosity[iteration % 2];
  }
  return energy;
}

// Whether the iteration has changed the energy by less than a fraction of it.
static inline bool is_converged(const struct mesh *mesh, uint32_t iteration, double change_max) {
  double energy = total_energy(mesh, iteration);
  return fabs(energy - total_energy(mesh, iteration - 1)) < change_max * energy;
}

#endif
