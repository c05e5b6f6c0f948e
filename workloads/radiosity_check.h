// SPDX-License-Identifier: Apache-2.0
//
// Whether a radiosity answer is right. Everything that is durable is looked at: the shape of every
// element, every interaction, every radiosity. The last iteration is done again from the
// radiosities before it, and the energy is compared with that of the same mesh when it has settled.
#ifndef RADIOSITY_CHECK_H
#define RADIOSITY_CHECK_H

#include <string.h>

#include "radiosity_mesh.h"
#include "radiosity_replay.h"
#include "scramble.h"

struct answer {
  const char *fault; // NULL if there is none
  uint32_t elements, interactions;
  double energy;
  double closure; // mean sum of the visible form factors of an undivided element; 1 if exact
  double error;   // of the energy, against the settled one
  uint64_t checksum;
};

struct checker {
  const struct mesh *mesh;
  uint32_t iteration;
  double transport_max;
  struct answer answer;
  double area, closure_area;
  double *settled; // radiosities of elements
};

// What a path from a patch to one of its elements has met so far.
struct path {
  double incident, form_factors;
  double seen[PATCHES_MAX]; // the part of each patch with which there are interactions
};

static inline void add_to_checksum(struct checker *checker, const void *value, size_t bytes) {
  uint64_t bits = 0;
  memcpy(&bits, value, bytes);
  checker->answer.checksum = scramble(checker->answer.checksum ^ bits);
}

static inline void fault(struct checker *checker, bool is_right, const char *what) {
  if (!is_right && checker->answer.fault == NULL)
    checker->answer.fault = what;
}

static inline bool is_close(double a, double b) {
  return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

static inline void check_interaction(struct checker *checker, element_index receiver,
                                     const struct interaction *interaction, struct path *path) {
  const struct mesh *mesh = checker->mesh;
  if (interaction->source >= mesh->first_element[mesh->patches]) {
    fault(checker, false, "an interaction with no element");
    return;
  }
  const struct element *source = &mesh->elements[interaction->source];
  struct interaction again = estimate(mesh, receiver, interaction->source);
  fault(checker,
        again.form_factor == interaction->form_factor &&
            again.visibility == interaction->visibility,
        "an interaction is not what it should be");
  fault(checker,
        refinement_of(mesh, receiver, interaction, checker->transport_max, checker->iteration) ==
            ACCURATE,
        "an interaction is not refined");
  path->seen[source->patch] += source->scale * source->scale;
  path->incident += transported(mesh, interaction, checker->iteration);
  path->form_factors += interaction->form_factor * interaction->visibility;
  checker->answer.interactions++;
  add_to_checksum(checker, &interaction->source, sizeof interaction->source);
  add_to_checksum(checker, &interaction->visibility, sizeof interaction->visibility);
  add_to_checksum(checker, &interaction->form_factor, sizeof interaction->form_factor);
}

// Every undivided element has, with those around it, interactions with the whole of every patch
// that its own patch faces, and with no part of it twice.
static inline void check_undivided(struct checker *checker, const struct element *element,
                                   const struct path *path) {
  const struct mesh *mesh = checker->mesh;
  const struct patch *patch = &mesh->patch[element->patch];
  for (uint32_t other = 0; other < mesh->patches; other++) {
    bool is_facing = other != element->patch && are_facing(patch, &mesh->patch[other]);
    fault(checker, path->seen[other] == (is_facing ? 1 : 0),
          "part of a patch is left out or twice");
  }
  fault(checker,
        is_close(element->radiosity[checker->iteration % 2],
                 patch->emission + patch->reflectance * path->incident),
        "an element's radiosity is not what it emits and reflects");
  checker->area += element->area;
  checker->closure_area += element->area * path->form_factors;
}

static inline void check_element(struct checker *checker, element_index index, struct path path) {
  const struct mesh *mesh = checker->mesh;
  const struct element *element = &mesh->elements[index];
  double radiosity = element->radiosity[checker->iteration % 2], quarters = 0;
  struct list list = element->lists[checker->iteration % 2];
  for (uint32_t i = 0; i < list.count; i++)
    check_interaction(checker, index, &mesh->interactions[list.first + i], &path);
  checker->answer.elements++;
  add_to_checksum(checker, &radiosity, sizeof radiosity);
  if (!is_divided(mesh, index)) {
    check_undivided(checker, element, &path);
    return;
  }
  const struct patch *patch = &mesh->patch[element->patch];
  for (unsigned i = 0; i < QUARTERS; i++) {
    const struct element *quarter = &mesh->elements[first_quarter(mesh, index) + i];
    struct shape shape = quarter_of(patch, (struct shape){element->corner, element->scale}, i);
    fault(checker,
          quarter->patch == element->patch && quarter->area == element->area / QUARTERS &&
              quarter->scale == shape.scale && quarter->corner.x == shape.corner.x &&
              quarter->corner.y == shape.corner.y && quarter->corner.z == shape.corner.z,
          "a quarter is not one");
    quarters += quarter->radiosity[checker->iteration % 2];
    check_element(checker, first_quarter(mesh, index) + i, path);
  }
  fault(checker, is_close(radiosity, quarters / QUARTERS),
        "an element's radiosity is not the mean of its quarters'");
}

// One iteration over the mesh as it is, from and to tables of the checker's own.
static inline double settle(const struct checker *checker, const double *before, double *after,
                            element_index index, double incident) {
  const struct mesh *mesh = checker->mesh;
  const struct element *element = &mesh->elements[index];
  struct list list = element->lists[checker->iteration % 2];
  for (uint32_t i = 0; i < list.count; i++) {
    const struct interaction *interaction = &mesh->interactions[list.first + i];
    incident += interaction->form_factor * interaction->visibility * before[interaction->source];
  }
  const struct patch *patch = &mesh->patch[element->patch];
  after[index] = patch->emission + patch->reflectance * incident;
  if (is_divided(mesh, index)) {
    after[index] = 0;
    for (unsigned i = 0; i < QUARTERS; i++)
      after[index] +=
          settle(checker, before, after, first_quarter(mesh, index) + i, incident) / QUARTERS;
  }
  return after[index];
}

// The energy when no iteration changes it any more, which does not depend on how it was begun.
static inline double settled_energy(const struct checker *checker) {
  const struct mesh *mesh = checker->mesh;
  size_t elements = mesh->first_element[mesh->patches];
  double *radiosities = calloc(2 * elements, sizeof *radiosities);
  if (radiosities == NULL) {
    perror("no memory for the check");
    exit(EXIT_FAILURE);
  }
  double energy = 0, energy_before = -1;
  for (unsigned i = 0; i < 1000 && !(fabs(energy - energy_before) <= 1e-12 * energy); i++) {
    energy_before = energy;
    energy = 0;
    for (uint32_t patch = 0; patch < mesh->patches; patch++) {
      element_index root = mesh->first_element[patch];
      energy += mesh->elements[root].area * settle(checker, radiosities + i % 2 * elements,
                                                   radiosities + (i + 1) % 2 * elements, root, 0);
    }
  }
  free(radiosities);
  return energy;
}

// By how much the form factors of undivided patches that are far from each other contradict
// reciprocity: what leaves one for the other is the same both ways.
static inline double reciprocity_error(const struct mesh *mesh) {
  double flow = 0, error = 0;
  for (uint32_t a = 0; a < mesh->patches; a++)
    for (uint32_t b = 0; b < a; b++) {
      element_index first = mesh->first_element[a], second = mesh->first_element[b];
      double area = mesh->elements[first].area, other_area = mesh->elements[second].area;
      double there = area * estimate(mesh, first, second).form_factor;
      double back = other_area * estimate(mesh, second, first).form_factor;
      flow += there + back;
      error += fabs(there - back);
    }
  return error / flow;
}

static inline struct answer check_answer(const struct mesh *durable, const struct model *model,
                                         uint32_t iteration, double transport_max,
                                         double change_max) {
  struct mesh without_tree = *durable, *mesh = &without_tree;
  without_tree.space.nodes = NULL;
  struct checker checker = {.mesh = mesh, .iteration = iteration, .transport_max = transport_max};
  struct path path = {0};
  double reflectance_max = 0;
  for (uint32_t patch = 0; patch < mesh->patches; patch++) {
    reflectance_max = fmax(reflectance_max, mesh->patch[patch].reflectance);
    check_element(&checker, mesh->first_element[patch], path);
  }
  struct answer *answer = &checker.answer;
  answer->energy = total_energy(mesh, iteration);
  answer->closure = checker.closure_area / checker.area;
  fault(&checker, answer->closure > 0.7 && answer->closure < 1.1,
        "the form factors of a closed room do not sum to 1");
  fault(&checker, reciprocity_error(mesh) < 0.1, "the form factors are not reciprocal");
  fault(&checker, is_converged(mesh, iteration, change_max), "the energy is still changing");
  // Changes become smaller at least as fast as light does by reflection.
  double settled = settled_energy(&checker);
  answer->error = fabs(answer->energy - settled) / settled;
  fault(&checker, answer->error <= change_max * reflectance_max / (1 - reflectance_max),
        "the energy is not near the one that settles");
  fault(&checker, is_replayed(mesh, model, iteration, transport_max, change_max),
        "a replay has another answer");
  return *answer;
}

#endif
