// SPDX-License-Identifier: Apache-2.0
//
// The phases of the radiosity example: what a thread does with one patch in each of them, and how
// what it writes is persisted.
#ifndef RADIOSITY_PHASES_H
#define RADIOSITY_PHASES_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint.h"
#include "options.h"
#include "persist.h"
#include "radiosity_mesh.h"
#include "radiosity_room.h"
#include "radiosity_tasks.h"

enum { CHUNK_INTERACTIONS = 256 }; // that a thread takes at once

// Phases are counted from 0. Iteration i, from 1, is the phases 2 i and 2 i + 1.
enum { MODELLING, LINKING, FIRST_ITERATION };

struct radiosity {
  double area_min, transport_max, change_max;
  unsigned threads;
  enum flush flush;
  enum persist_level level;
  // In the pool: of each thread at the level `barrier`, else of each patch, its phases.
  struct loop_index *indices;
  struct mesh mesh;
  // Volatile:
  uint64_t first_phase;
  uint64_t interaction_capacity;
  _Atomic uint64_t interactions_used;
  struct task_queues queues;
  _Atomic uint64_t polls; // in vain, of all threads
  pthread_mutex_t space_lock, *element_locks;
  pthread_barrier_t barrier;
};

// A thread, with what it has written in the region that it is in.
struct worker {
  struct radiosity *radiosity;
  unsigned thread;
  uint32_t iteration;
  uint32_t chunk, chunk_end; // the interactions that it has taken and not used
  struct interaction *kept;  // of the list that is being refined
  element_index *handed_down;
  size_t kept_count, handed_down_count;
  bool is_list_changed;
  struct range {
    const void *start;
    size_t bytes;
  } *written;
  size_t written_count, written_capacity;
  uint64_t polls; // in vain
};

static inline void *allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory == NULL) {
    perror("no memory for the tables");
    exit(EXIT_FAILURE);
  }
  return memory;
}

// Persisting

static inline void note_written(struct worker *worker, const void *start, size_t bytes) {
  if (worker->written_count == worker->written_capacity) {
    worker->written_capacity = 2 * worker->written_capacity + 64;
    worker->written = realloc(worker->written, worker->written_capacity * sizeof *worker->written);
    if (worker->written == NULL) {
      perror("no memory for the tables");
      exit(EXIT_FAILURE);
    }
  }
  worker->written[worker->written_count++] = (struct range){start, bytes};
}

static inline void note_node(void *context, node_index node) {
  struct worker *worker = context;
  const struct node *nodes = worker->radiosity->mesh.space.nodes;
  note_written(worker, &nodes[node], sizeof *nodes);
}

// The second line of an element.
static inline void note_state(struct worker *worker, const struct element *element) {
  note_written(worker, element->radiosity, LINE_BYTES);
}

static inline void flush_written(struct worker *worker) {
  for (size_t i = 0; i < worker->written_count; i++)
    flush_range(worker->radiosity->flush, worker->written[i].start, worker->written[i].bytes);
  worker->written_count = 0;
}

// Ends the region of an element, at the level `fine`. Its mark is in the line of its state, whose
// stores reach memory in their order, so the line is flushed only once.
static inline void finish_element(struct worker *worker, const struct element *element,
                                  _Atomic uint32_t *mark) {
  atomic_store_explicit(mark, worker->iteration, memory_order_release);
  persist(worker->radiosity->flush, element->radiosity, LINE_BYTES);
  crash_point();
}

static inline bool is_element_finished(const struct worker *worker, _Atomic uint32_t *mark) {
  return worker->radiosity->level == LEVEL_FINE &&
         atomic_load_explicit(mark, memory_order_relaxed) == worker->iteration;
}

static inline void finish_task(struct worker *worker, uint32_t patch) {
  const struct radiosity *radiosity = worker->radiosity;
  if (radiosity->level == LEVEL_BARRIER)
    return;
  flush_written(worker);
  finish_region(radiosity->flush, &radiosity->indices[patch]);
}

// Lists

static inline uint32_t take_interactions(struct worker *worker, size_t count) {
  struct radiosity *radiosity = worker->radiosity;
  uint32_t lines = (uint32_t)((count + LINE_INTERACTIONS - 1) / LINE_INTERACTIONS);
  uint32_t places = lines * LINE_INTERACTIONS;
  if (worker->chunk_end - worker->chunk < places) {
    uint32_t size = places > CHUNK_INTERACTIONS ? places : CHUNK_INTERACTIONS;
    uint64_t chunk = atomic_fetch_add(&radiosity->interactions_used, size);
    if (chunk + size > radiosity->interaction_capacity) {
      fprintf(stderr, "radiosity: no room for more interactions: -ae or -bf is too small\n");
      exit(EXIT_USAGE);
    }
    worker->chunk = (uint32_t)chunk;
    worker->chunk_end = worker->chunk + size;
  }
  worker->chunk += places;
  return worker->chunk - places;
}

// A new list of what the worker has kept.
static inline struct list write_list(struct worker *worker) {
  struct list list = {.count = (uint32_t)worker->kept_count};
  if (list.count == 0)
    return list;
  list.first = take_interactions(worker, list.count);
  struct interaction *interactions = &worker->radiosity->mesh.interactions[list.first];
  memcpy(interactions, worker->kept, list.count * sizeof *interactions);
  note_written(worker, interactions, list.count * sizeof *interactions);
  return list;
}

static inline void divide(struct worker *worker, element_index index) {
  struct radiosity *radiosity = worker->radiosity;
  struct element *element = &radiosity->mesh.elements[index];
  if (is_divided(&radiosity->mesh, index))
    return;
  pthread_mutex_lock(&radiosity->element_locks[index]);
  if (!is_divided(&radiosity->mesh, index)) {
    make_quarters(&radiosity->mesh, index, worker->iteration);
    atomic_store_explicit(&element->divided_in, worker->iteration, memory_order_release);
    note_written(worker, &radiosity->mesh.elements[first_quarter(&radiosity->mesh, index)],
                 QUARTERS * sizeof *element);
    note_state(worker, element);
  }
  pthread_mutex_unlock(&radiosity->element_locks[index]);
}

// Keeps an interaction if it is accurate enough. Otherwise others take its place: with the quarters
// of the source, or of the quarters of the receiver.
static inline void refine(struct worker *worker, element_index receiver,
                          const struct interaction *interaction) {
  const struct radiosity *radiosity = worker->radiosity;
  const struct mesh *mesh = &radiosity->mesh;
  switch (refinement_of(mesh, receiver, interaction, radiosity->transport_max, worker->iteration)) {
  case ACCURATE:
    worker->kept[worker->kept_count++] = *interaction;
    return;
  case DIVIDE_RECEIVER:
    divide(worker, receiver);
    worker->handed_down[worker->handed_down_count++] = interaction->source;
    break;
  case DIVIDE_SOURCE:
    divide(worker, interaction->source);
    for (unsigned i = 0; i < QUARTERS; i++) {
      element_index source = first_quarter(mesh, interaction->source) + i;
      struct interaction part = estimate(mesh, receiver, source);
      refine(worker, receiver, &part);
    }
  }
  worker->is_list_changed = true;
}

static inline void refine_list(struct worker *worker, element_index receiver, struct list list) {
  const struct interaction *interactions = &worker->radiosity->mesh.interactions[list.first];
  for (uint32_t i = 0; i < list.count; i++)
    refine(worker, receiver, &interactions[i]);
}

// Gives the quarters their interactions with the sources to which the element is too large.
static inline void hand_down(struct worker *worker, element_index element) {
  const struct mesh *mesh = &worker->radiosity->mesh;
  if (worker->handed_down_count == 0)
    return;
  for (unsigned i = 0; i < QUARTERS; i++) {
    element_index index = first_quarter(mesh, element) + i;
    worker->kept_count = 0;
    for (size_t j = 0; j < worker->handed_down_count; j++)
      worker->kept[worker->kept_count++] = estimate(mesh, index, worker->handed_down[j]);
    struct element *quarter = &mesh->elements[index];
    quarter->handed_down = write_list(worker);
    quarter->handed_down_in = worker->iteration;
    if (worker->radiosity->level == LEVEL_FINE)
      note_state(worker, quarter); // otherwise when it gathers, in the same region
  }
}

static inline void gather(struct worker *worker, element_index index) {
  const struct radiosity *radiosity = worker->radiosity;
  struct element *element = &radiosity->mesh.elements[index];
  uint32_t iteration = worker->iteration;
  struct list list = element->lists[(iteration - 1) % 2];
  worker->kept_count = worker->handed_down_count = 0;
  worker->is_list_changed = element->handed_down_in == iteration;
  if (worker->is_list_changed)
    refine_list(worker, index, element->handed_down);
  refine_list(worker, index, list);
  double gathered = 0;
  for (size_t i = 0; i < worker->kept_count; i++)
    gathered += transported(&radiosity->mesh, &worker->kept[i], iteration);
  if (worker->is_list_changed)
    list = write_list(worker);
  hand_down(worker, index);
  if (radiosity->level == LEVEL_FINE && worker->written_count > 0) {
    flush_written(worker);
    fence(radiosity->flush);
  }
  element->gathered = gathered;
  element->lists[iteration % 2] = list;
  if (radiosity->level == LEVEL_FINE)
    finish_element(worker, element, &element->gathered_in);
  else
    note_state(worker, element);
}

// Quarters that others have made in this phase have nothing to gather yet.
static inline void gather_tree(struct worker *worker, element_index index) {
  const struct mesh *mesh = &worker->radiosity->mesh;
  struct element *element = &mesh->elements[index];
  if (!is_element_finished(worker, &element->gathered_in))
    gather(worker, index);
  if (!is_divided(mesh, index))
    return;
  element_index first = first_quarter(mesh, index);
  if (atomic_load_explicit(&element->divided_in, memory_order_relaxed) < worker->iteration ||
      mesh->elements[first].handed_down_in == worker->iteration)
    for (unsigned i = 0; i < QUARTERS; i++)
      gather_tree(worker, first + i);
}

// Returns the radiosity of an element, after what the elements around it have gathered.
static inline double average(struct worker *worker, element_index index, double from_above) {
  const struct mesh *mesh = &worker->radiosity->mesh;
  struct element *element = &mesh->elements[index];
  double *radiosity = &element->radiosity[worker->iteration % 2];
  if (is_element_finished(worker, &element->averaged_in))
    return *radiosity;
  double incident = from_above + element->gathered, quarters = 0;
  if (is_divided(mesh, index)) {
    for (unsigned i = 0; i < QUARTERS; i++)
      quarters += average(worker, first_quarter(mesh, index) + i, incident);
    *radiosity = quarters / QUARTERS;
  } else {
    const struct patch *patch = &mesh->patch[element->patch];
    *radiosity = patch->emission + patch->reflectance * incident;
  }
  if (worker->radiosity->level == LEVEL_FINE)
    finish_element(worker, element, &element->averaged_in);
  else
    note_state(worker, element);
  return *radiosity;
}

// Makes a patch's plane and its undivided element, and puts it into the tree. That ends under the
// lock, so that nothing durable ever hangs below a node that is not.
static inline void model_patch(struct worker *worker, uint32_t index) {
  struct radiosity *radiosity = worker->radiosity;
  struct mesh *mesh = &radiosity->mesh;
  make_plane(&mesh->patch[index]);
  note_written(worker, mesh->patch[index].axes,
               sizeof(struct patch) - offsetof(struct patch, axes));
  make_root(mesh, index);
  note_written(worker, &mesh->elements[mesh->first_element[index]], sizeof(struct element));
  pthread_mutex_lock(&radiosity->space_lock);
  if (!mesh->patch[index].is_boundary)
    insert_patch(&mesh->space, index, note_node, worker);
  finish_task(worker, index);
  pthread_mutex_unlock(&radiosity->space_lock);
}

static inline void link_patch(struct worker *worker, uint32_t index) {
  const struct mesh *mesh = &worker->radiosity->mesh;
  struct element *root = &mesh->elements[mesh->first_element[index]];
  worker->kept_count = 0;
  for (uint32_t other = 0; other < mesh->patches; other++)
    if (other != index && are_facing(&mesh->patch[index], &mesh->patch[other]))
      worker->kept[worker->kept_count++] =
          estimate(mesh, mesh->first_element[index], mesh->first_element[other]);
  root->lists[0] = write_list(worker);
  note_state(worker, root);
  finish_task(worker, index);
}

static inline void perform(struct worker *worker, uint64_t phase, uint32_t patch) {
  element_index root = worker->radiosity->mesh.first_element[patch];
  if (phase == MODELLING) {
    model_patch(worker, patch);
  } else if (phase == LINKING) {
    link_patch(worker, patch);
  } else {
    worker->iteration = (uint32_t)(phase / 2);
    if (phase % 2 == 0)
      gather_tree(worker, root);
    else
      average(worker, root, 0);
    finish_task(worker, patch);
  }
}

#endif
