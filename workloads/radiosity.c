// SPDX-License-Identifier: Apache-2.0
//
// Hierarchical radiosity in a small room, which goes on where it stopped after a crash.
//
// Patches are put into a tree of planes, then linked to all patches that they face, with estimates
// of form factor and visibility. Each iteration has two phases: every element refines the list of
// its interactions and gathers radiosity through it, dividing elements by quarters where too much
// is carried; then what was gathered is pushed down to the undivided elements of each patch, and
// what leaves them pulled up. It ends when the total energy hardly changes. A task is a patch in
// one of these four kinds of phases; each thread has a queue of its own, steals from others when it
// is empty, and polls the queues until the tasks of the phase are done. Inserting into the tree is
// under one lock, dividing an element under a lock of its own.
//
// A phase changes nothing that it reads: radiosities and lists are kept twice, for even and odd
// iterations, and lists are replaced as a whole. Every element has its place from the beginning, so
// dividing it twice changes nothing either. Therefore a task that a crash has cut short is simply
// done again, and the answer has the same bits for any number of threads, steals and crashes.
//
// A region is all that a thread does in a phase (`barrier`), a task (`coarse`), or in an iteration
// one element (`fine`). The loop indices count phases, one for each thread or, since tasks move
// between threads, for each patch; an element has marks of its own beside its state.
//
// From the literature: hierarchies of elements and the estimates of form factors, Hanrahan,
// Salzman, Aupperle, SIGGRAPH 1991; tasks with stealing and the meaning of the three parameters,
// Singh, Gupta, Levoy, IEEE Computer, July 1994, recalled. The room is our own, and so is where
// data and regions are; the light is as bright as makes the work that of the published study.
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint.h"
#include "options.h"
#include "persist.h"
#include "pool.h"
#include "radiosity_check.h"
#include "radiosity_mesh.h"
#include "radiosity_phases.h"
#include "radiosity_room.h"
#include "radiosity_tasks.h"
#include "team.h"

static const char usage[] =
    "radiosity [-ae AREA] [-bf RADIOSITY] [-en FRACTION] [-batch] [-p THREADS] "
    "[--persist-level barrier|coarse|fine] [--flush none|clflush|clflushopt|clwb] [--pool FILE] "
    "[--crash-at N]";

static const uint64_t magic = UINT64_C(0x312d5349444152); // "RADIS-1"

enum { NODES_PER_PATCH = 64, INTERACTIONS_PER_ELEMENT = 512 };

// The patches of a phase are dealt to the queues; those done before a crash are left out.
static void fill_queue(const struct worker *worker, uint64_t phase) {
  struct radiosity *radiosity = worker->radiosity;
  for (uint32_t patch = worker->thread; patch < radiosity->mesh.patches;
       patch += radiosity->threads)
    if (radiosity->level == LEVEL_BARRIER || radiosity->indices[patch].regions_finished == phase)
      put_task(&radiosity->queues, worker->thread, patch);
}

// Whether the phase is one of an iteration that is not needed.
static bool is_end(const struct radiosity *radiosity, uint64_t phase) {
  return phase > FIRST_ITERATION && phase % 2 == 0 &&
         is_converged(&radiosity->mesh, (uint32_t)(phase / 2 - 1), radiosity->change_max);
}

static void work(unsigned thread, void *problem) {
  struct radiosity *radiosity = problem;
  size_t elements = radiosity->mesh.first_element[radiosity->mesh.patches];
  struct worker worker = {.radiosity = radiosity, .thread = thread};
  worker.kept = allocate(elements, sizeof *worker.kept);
  worker.handed_down = allocate(elements, sizeof *worker.handed_down);
  for (uint64_t phase = radiosity->first_phase; !is_end(radiosity, phase); phase++) {
    fill_queue(&worker, phase);
    pthread_barrier_wait(&radiosity->barrier);
    for (uint32_t patch; take_task(&radiosity->queues, thread, &patch, &worker.polls);) {
      perform(&worker, phase, patch);
      complete_task(&radiosity->queues);
      take_turns();
    }
    if (radiosity->level == LEVEL_BARRIER) {
      flush_written(&worker);
      finish_region(radiosity->flush, &radiosity->indices[thread]);
    }
    pthread_barrier_wait(&radiosity->barrier);
  }
  atomic_fetch_add(&radiosity->polls, worker.polls);
  free(worker.kept);
  free(worker.handed_down);
  free(worker.written);
}

// Going on after a crash

static size_t index_count(const struct radiosity *radiosity) {
  return radiosity->level == LEVEL_BARRIER ? radiosity->threads : radiosity->mesh.patches;
}

static bool is_modelled(const struct radiosity *radiosity, uint32_t patch) {
  return radiosity->first_phase > MODELLING ||
         (radiosity->level != LEVEL_BARRIER && radiosity->indices[patch].regions_finished > 0);
}

// Cuts off the tree what a task has begun to insert, and finds the nodes in use.
static void cut_unfinished(struct radiosity *radiosity, node_index index) {
  struct space *space = &radiosity->mesh.space;
  for (enum side side = FRONT; side <= BACK; side++) {
    node_index *child = &space->nodes[index].children[side];
    if (*child == 0)
      continue;
    uint32_t patch = space->nodes[*child].patch;
    if (patch == 0 || !is_modelled(radiosity, patch - 1)) {
      *child = 0;
      continue;
    }
    space->used = *child + 1 > space->used ? *child + 1 : space->used;
    cut_unfinished(radiosity, *child);
  }
}

static void repair_space(struct radiosity *radiosity) {
  struct space *space = &radiosity->mesh.space;
  cut_unfinished(radiosity, 0);
  memset(&space->nodes[space->used], 0, (space->capacity - space->used) * sizeof *space->nodes);
  persist(radiosity->flush, space->nodes, space->capacity * sizeof *space->nodes);
}

// What one task has divided another may count on and have finished, so each mark of a division in
// this phase is taken at its word, whether or not all of the division was durable.
static void repair_divisions(struct radiosity *radiosity, uint32_t iteration) {
  struct mesh *mesh = &radiosity->mesh;
  for (uint32_t patch = 0; patch < mesh->patches; patch++) {
    element_index first = mesh->first_element[patch], end = mesh->first_element[patch + 1];
    struct element *elements = mesh->elements;
    for (element_index index = end - 1; index > first; index--) {
      struct element *whole = &elements[first + (index - first - 1) / QUARTERS];
      if (elements[index].divided_in == iteration && whole->divided_in == 0)
        whole->divided_in = iteration;
    }
    for (element_index index = first; index < end; index++)
      if (elements[index].divided_in == iteration)
        make_quarters(mesh, index, iteration);
    flush_range(radiosity->flush, &elements[first], (end - first) * sizeof *elements);
  }
  fence(radiosity->flush);
}

static uint32_t end_of(struct list list) {
  uint32_t lines = (list.count + LINE_INTERACTIONS - 1) / LINE_INTERACTIONS;
  return list.first + lines * LINE_INTERACTIONS;
}

static void find_interactions_used(struct radiosity *radiosity) {
  const struct mesh *mesh = &radiosity->mesh;
  uint32_t used = 0;
  for (element_index index = 0; index < mesh->first_element[mesh->patches]; index++) {
    const struct element *element = &mesh->elements[index];
    const struct list lists[] = {element->lists[0], element->lists[1], element->handed_down};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
      used = end_of(lists[i]) > used ? end_of(lists[i]) : used;
  }
  radiosity->interactions_used = used;
}

// Finds the phase in which the work goes on. Returns the number of regions that are finished. At
// the level `barrier` nothing says which tasks a thread has stolen, so a phase that not all threads
// have finished is done again by all.
static uint64_t resume(struct radiosity *radiosity, const char *path) {
  uint64_t total = 0, phase_min = UINT64_MAX, phase_max = 0;
  for (size_t i = 0; i < index_count(radiosity); i++) {
    uint64_t phase = radiosity->indices[i].regions_finished;
    total += phase;
    phase_min = phase < phase_min ? phase : phase_min;
    phase_max = phase > phase_max ? phase : phase_max;
  }
  if (phase_max > phase_min + 1 || phase_max > UINT32_MAX)
    pool_mismatch(path, "damaged: the loop indices contradict each other");
  radiosity->first_phase = phase_min;
  if (radiosity->level == LEVEL_BARRIER) {
    for (size_t i = 0; i < index_count(radiosity); i++)
      radiosity->indices[i].regions_finished = phase_min;
    persist(radiosity->flush, radiosity->indices,
            index_count(radiosity) * sizeof *radiosity->indices);
  }
  repair_space(radiosity);
  if (phase_min >= FIRST_ITERATION && phase_min % 2 == 0)
    repair_divisions(radiosity, (uint32_t)(phase_min / 2));
  find_interactions_used(radiosity);
  return total;
}

// The set-up

static size_t whole_lines(size_t bytes) {
  return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

// Returns the bytes of the pool.
static size_t open_pool(struct radiosity *radiosity, const struct model *model, const char *path) {
  struct mesh *mesh = &radiosity->mesh;
  size_t index_bytes = index_count(radiosity) * sizeof(struct loop_index);
  size_t patch_bytes = model->count * sizeof(struct patch);
  size_t node_bytes = whole_lines(mesh->space.capacity * sizeof(struct node));
  size_t element_bytes = mesh->first_element[mesh->patches] * sizeof(struct element);
  size_t bytes = sizeof(struct pool_header) + index_bytes + patch_bytes + node_bytes +
                 element_bytes + radiosity->interaction_capacity * sizeof(struct interaction);
  char *base = pool_open(path, bytes, false);
  struct pool_header *header = (struct pool_header *)base;
  radiosity->indices = (struct loop_index *)(header + 1);
  mesh->patch = (struct patch *)((char *)radiosity->indices + index_bytes);
  mesh->space.patches = mesh->patch;
  mesh->space.nodes = (struct node *)((char *)mesh->patch + patch_bytes);
  mesh->elements = (struct element *)((char *)mesh->space.nodes + node_bytes);
  mesh->interactions = (struct interaction *)((char *)mesh->elements + element_bytes);
  uint64_t parameters[POOL_PARAMETERS] = {0, 0, 0, radiosity->threads, radiosity->level};
  memcpy(&parameters[0], &radiosity->area_min, sizeof *parameters);
  memcpy(&parameters[1], &radiosity->transport_max, sizeof *parameters);
  memcpy(&parameters[2], &radiosity->change_max, sizeof *parameters);
  if (!pool_is_formatted(header, path, magic, parameters)) {
    memset(radiosity->indices, 0, index_bytes);
    memcpy(mesh->patch, model->patches, patch_bytes);
    memset(mesh->space.nodes, 0, node_bytes + element_bytes);
    persist(radiosity->flush, radiosity->indices,
            index_bytes + patch_bytes + node_bytes + element_bytes);
    pool_finish_format(header, magic, parameters, radiosity->flush);
  }
  return bytes;
}

// Gives every element its place.
static void lay_out(struct radiosity *radiosity, const struct model *model) {
  struct mesh *mesh = &radiosity->mesh;
  mesh->patches = model->count;
  for (uint32_t patch = 0; patch < model->count; patch++)
    mesh->first_element[patch + 1] =
        mesh->first_element[patch] +
        element_capacity(patch_area(&model->patches[patch]), radiosity->area_min);
  element_index elements = mesh->first_element[model->count];
  mesh->space.used = 1;
  mesh->space.capacity = NODES_PER_PATCH * model->count;
  radiosity->interaction_capacity = (uint64_t)elements * INTERACTIONS_PER_ELEMENT +
                                    (uint64_t)radiosity->threads * CHUNK_INTERACTIONS;
  radiosity->element_locks = allocate(elements, sizeof *radiosity->element_locks);
  for (element_index element = 0; element < elements; element++)
    pthread_mutex_init(&radiosity->element_locks[element], NULL);
  pthread_mutex_init(&radiosity->space_lock, NULL);
  pthread_barrier_init(&radiosity->barrier, NULL, radiosity->threads);
  radiosity->queues = new_task_queues(radiosity->threads, model->count);
}

// Reads a decimal number between the bounds, which are allowed.
static double real_option(const char *option, const char *text, double low, double high) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= low && value <= high))
    usage_error(usage, "%s takes a number from %g to %g, not '%s'", option, low, high, text);
  return value;
}

static const char *parse_arguments(struct radiosity *radiosity, int count, char **values) {
  // `-batch` says that nothing is to be drawn, which it never is.
  static const struct option options[] = {{"ae", required_argument, NULL, 'a'},
                                          {"bf", required_argument, NULL, 'b'},
                                          {"en", required_argument, NULL, 'e'},
                                          {"batch", no_argument, NULL, 'B'},
                                          {"flush", required_argument, NULL, 'f'},
                                          {"persist-level", required_argument, NULL, 'l'},
                                          {"pool", required_argument, NULL, 'P'},
                                          {"crash-at", required_argument, NULL, 'c'},
                                          {0}};
  const char *pool = NULL;
  for (int option; (option = getopt_long_only(count, values, "p:", options, NULL)) != -1;)
    switch (option) {
    case 'a':
      radiosity->area_min = real_option("-ae", optarg, 1000, 1e9);
      break;
    case 'b':
      radiosity->transport_max = real_option("-bf", optarg, 1e-6, 1e9);
      break;
    case 'e':
      radiosity->change_max = real_option("-en", optarg, 1e-9, 1);
      break;
    case 'B':
      break;
    case 'p':
      radiosity->threads = (unsigned)number_option(usage, "-p", optarg, 1, TEAM_THREADS_MAX);
      break;
    case 'f':
      radiosity->flush = flush_option(usage, optarg);
      break;
    case 'l':
      radiosity->level = persist_level_option(usage, optarg);
      break;
    case 'P':
      pool = optarg;
      break;
    case 'c':
      crash_at = number_option(usage, "--crash-at", optarg, 1, UINT64_MAX);
      break;
    default:
      usage_error(usage, "wrong option");
    }
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  return pool;
}

int main(int count, char **values) {
  struct radiosity radiosity = {.area_min = 5000,
                                .transport_max = 0.1,
                                .change_max = 0.05,
                                .threads = 1,
                                .flush = FLUSH_CLFLUSH,
                                .level = LEVEL_FINE};
  const char *path = parse_arguments(&radiosity, count, values);
  struct patch patches[PATCHES_MAX];
  struct model model = {.patches = patches};
  make_model(&model);
  lay_out(&radiosity, &model);
  size_t bytes = open_pool(&radiosity, &model, path);
  uint64_t resumed = resume(&radiosity, path);

  team_run(radiosity.threads, work, &radiosity);

  uint32_t iterations = (uint32_t)(radiosity.indices[0].regions_finished / 2 - 1);
  struct answer answer = check_answer(&radiosity.mesh, &model, iterations, radiosity.transport_max,
                                      radiosity.change_max);
  printf(
      "radiosity: ae=%g bf=%g en=%g threads=%u level=%s flush=%s bytes=%zu regions_resumed=%" PRIu64
      " polls=%" PRIu64
      " iterations=%u elements=%u interactions=%u energy=%.6e closure=%.3f error=%.1e "
      "checksum=%016" PRIx64 " %s%s\n",
      radiosity.area_min, radiosity.transport_max, radiosity.change_max, radiosity.threads,
      persist_level_names[radiosity.level], flush_names[radiosity.flush], bytes, resumed,
      radiosity.polls, iterations, answer.elements, answer.interactions, answer.energy,
      answer.closure, answer.error, answer.checksum,
      answer.fault == NULL ? "ok" : "WRONG: ", answer.fault == NULL ? "" : answer.fault);
  return answer.fault == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
