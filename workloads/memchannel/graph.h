// SPDX-License-Identifier: Apache-2.0
//
// Betweenness centrality (Brandes 2001) and PageRank by pulling, on a Kronecker graph as Graph500
// and the GAP benchmark suite make it: 2^size vertices, 16 edges a vertex, both ways, numbers of
// vertices shuffled.
#ifndef GRAPH_H
#define GRAPH_H

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "broken.h"
#include "scramble.h"
#include "tenant.h"

enum { GRAPH_DEGREE = 16, GRAPH_BLOCK = 16 };

struct graph {
  uint32_t vertices;
  uint64_t *first; // of a vertex's neighbours; one more than there are vertices
  uint32_t *neighbours;
};

// Probabilities of the quarters of the adjacency matrix: 0.57, 0.19, 0.19 and the rest.
static inline void graph_edge(uint64_t number, unsigned scale, uint32_t *from, uint32_t *to) {
  *from = *to = 0;
  for (unsigned level = 0; level < scale; level++) {
    double part = (double)(scramble(number * 64 + level) >> 11) * 0x1p-53;
    *from = *from << 1 | (part >= 0.76);
    *to = *to << 1 | ((part >= 0.57 && part < 0.76) || part >= 0.95);
  }
}

static void graph_make(struct graph *graph, struct arena *arena, unsigned scale) {
  uint64_t edges = (uint64_t)GRAPH_DEGREE << scale;
  graph->vertices = UINT32_C(1) << scale;
  uint32_t *number = malloc(graph->vertices * sizeof *number);
  uint32_t *ends = malloc(2 * edges * sizeof *ends);
  for (uint32_t i = 0; i < graph->vertices; i++) {
    uint32_t other = (uint32_t)(scramble(i + (UINT64_C(1) << 50)) % (i + 1));
    number[i] = number[other];
    number[other] = i;
  }
  graph->first = arena_take(arena, (graph->vertices + 1) * sizeof *graph->first);
  graph->neighbours = arena_take(arena, 2 * edges * sizeof *graph->neighbours);
  for (uint64_t edge = 0; edge < edges; edge++) {
    graph_edge(edge, scale, &ends[2 * edge], &ends[2 * edge + 1]);
    for (unsigned end = 0; end < 2; end++) {
      ends[2 * edge + end] = number[ends[2 * edge + end]];
      graph->first[ends[2 * edge + end] + 1]++;
    }
  }
  for (uint32_t i = 0; i < graph->vertices; i++)
    graph->first[i + 1] += graph->first[i];
  uint64_t *next = malloc(graph->vertices * sizeof *next);
  memcpy(next, graph->first, graph->vertices * sizeof *next);
  for (uint64_t end = 0; end < 2 * edges; end++)
    graph->neighbours[next[ends[end]]++] = ends[end ^ 1];
  free(next);
  free(ends);
  free(number);
}

// What a thread knows while it goes out from one source and back. Vertices are reached in the
// order of `queue`, and left in the opposite one.
struct bc_thread {
  uint64_t sources; // done
  uint32_t source;
  uint32_t head, tail; // of the queue
  bool goes_back;
  int32_t *depth; // -1: not reached
  double *paths;
  double *dependence;
  uint32_t *queue;
  double *scores;
} __attribute__((aligned(64)));

struct bc {
  struct graph graph;
  struct bc_thread threads[];
};

static inline void bc_begin(const struct graph *graph, struct bc_thread *own, unsigned thread) {
  uint64_t draw = (uint64_t)thread << 32 | own->sources << 8;
  do
    own->source = (uint32_t)(scramble(draw++) % graph->vertices);
  while (graph->first[own->source] == graph->first[own->source + 1]);
  own->depth[own->source] = 0;
  own->paths[own->source] = 1;
  own->queue[0] = own->source;
  own->head = 0;
  own->tail = 1;
  own->goes_back = false;
}

static inline void bc_forward(const struct graph *graph, struct bc_thread *own) {
  uint32_t at = own->queue[own->head++];
  uint64_t end = graph->first[at + 1] - (BROKEN == EDGE_LEFT_OUT);
  for (uint64_t edge = graph->first[at]; edge < end; edge++) {
    uint32_t to = graph->neighbours[edge];
    if (own->depth[to] < 0) {
      own->depth[to] = own->depth[at] + 1;
      own->queue[own->tail++] = to;
    }
    if (own->depth[to] == own->depth[at] + 1)
      own->paths[to] += own->paths[at];
  }
}

static inline void bc_back(const struct graph *graph, struct bc_thread *own) {
  uint32_t at = own->queue[--own->head];
  double sum = 0;
  for (uint64_t edge = graph->first[at]; edge < graph->first[at + 1]; edge++) {
    uint32_t to = graph->neighbours[edge];
    if (own->depth[to] == own->depth[at] + 1)
      sum += own->paths[at] / own->paths[to] * (1 + own->dependence[to]);
  }
  own->dependence[at] = sum;
  if (at != own->source)
    own->scores[at] += sum;
}

// Makes room for the next source.
static inline void bc_end(struct bc_thread *own) {
  for (uint32_t i = 0; i < own->tail; i++) {
    uint32_t at = own->queue[i];
    own->depth[at] = -1;
    own->paths[at] = own->dependence[at] = 0;
  }
  own->sources++;
}

static void bc_vectors(struct arena *arena, struct bc_thread *own, uint32_t vertices) {
  own->depth = arena_take(arena, vertices * sizeof *own->depth);
  own->paths = arena_take(arena, vertices * sizeof *own->paths);
  own->dependence = arena_take(arena, vertices * sizeof *own->dependence);
  own->queue = arena_take(arena, vertices * sizeof *own->queue);
  own->scores = arena_take(arena, vertices * sizeof *own->scores);
  memset(own->depth, -1, vertices * sizeof *own->depth);
}

static void bc_load(struct tenant *tenant) {
  struct bc *bc = tenant->state =
      arena_take(&tenant->arena, sizeof *bc + tenant->threads * sizeof(struct bc_thread));
  graph_make(&bc->graph, &tenant->arena, (unsigned)tenant->size);
  for (unsigned thread = 0; thread < tenant->threads; thread++) {
    bc_vectors(&tenant->arena, &bc->threads[thread], bc->graph.vertices);
    bc_begin(&bc->graph, &bc->threads[thread], thread);
  }
}

// A unit is a vertex, on the way out or back.
static inline void bc_step(const struct graph *graph, struct bc_thread *own, unsigned thread) {
  if (own->goes_back)
    bc_back(graph, own);
  else
    bc_forward(graph, own);
  if (!own->goes_back && own->head == own->tail) {
    own->goes_back = true;
  } else if (own->goes_back && own->head == 0) {
    bc_end(own);
    bc_begin(graph, own, thread);
  }
}

static void bc_work(struct tenant *tenant, unsigned thread, uint64_t unit) {
  struct bc *bc = tenant->state;
  (void)unit;
  bc_step(&bc->graph, &bc->threads[thread], thread);
}

// Depth of every vertex by going over all edges until nothing changes, and numbers of paths and
// dependences by depth: another way than the queue's.
static void bc_reference(const struct graph *graph, uint32_t source, int32_t *depth, double *paths,
                         double *dependence) {
  memset(depth, -1, graph->vertices * sizeof *depth);
  memset(paths, 0, graph->vertices * sizeof *paths);
  memset(dependence, 0, graph->vertices * sizeof *dependence);
  depth[source] = 0;
  paths[source] = 1;
  int32_t level = 0;
  for (bool has_changed = true; has_changed; level++) {
    has_changed = false;
    for (uint32_t to = 0; to < graph->vertices; to++) {
      if (depth[to] >= 0)
        continue;
      for (uint64_t edge = graph->first[to]; edge < graph->first[to + 1]; edge++)
        if (depth[graph->neighbours[edge]] == level) {
          depth[to] = level + 1;
          paths[to] += paths[graph->neighbours[edge]];
          has_changed = true;
        }
    }
  }
  while (level-- > 0)
    for (uint32_t at = 0; at < graph->vertices; at++)
      for (uint64_t edge = graph->first[at]; depth[at] == level && edge < graph->first[at + 1];
           edge++) {
        uint32_t to = graph->neighbours[edge];
        if (depth[to] == level + 1)
          dependence[at] += paths[at] / paths[to] * (1 + dependence[to]);
      }
}

static bool bc_is_near(double one, double other) {
  return fabs(one - other) <= 1e-9 * (fabs(one) + fabs(other));
}

// Scores of finished sources, and what has been reached from the present one.
static bool bc_thread_is_right(const struct graph *graph, const struct bc_thread *own,
                               unsigned thread) {
  uint32_t vertices = graph->vertices;
  struct bc_thread other = {.scores = calloc(vertices, sizeof(double))};
  int32_t *depth = malloc(vertices * sizeof *depth);
  double *paths = malloc(vertices * sizeof *paths);
  double *dependence = malloc(vertices * sizeof *dependence);
  other.depth = malloc(vertices * sizeof *depth);
  other.paths = malloc(vertices * sizeof *paths);
  other.queue = malloc(vertices * sizeof *other.queue);
  bool is_right = true;
  for (; other.sources <= own->sources; other.sources++) {
    bc_begin(graph, &other, thread);
    bc_reference(graph, other.source, depth, paths, dependence);
    for (uint32_t at = 0; other.sources < own->sources && at < vertices; at++)
      other.scores[at] += at == other.source ? 0 : dependence[at];
  }
  is_right = own->source == other.source;
  // On the way out, whoever has been visited has its paths; on the way back everybody has.
  uint32_t complete = own->goes_back ? own->tail : own->head;
  for (uint32_t i = 0; i < own->tail; i++) {
    uint32_t at = own->queue[i];
    is_right &= own->depth[at] == depth[at];
    is_right &= i >= complete || bc_is_near(own->paths[at], paths[at]);
    bool is_back = own->goes_back && i >= own->head;
    is_right &= !is_back || bc_is_near(own->dependence[at], dependence[at]);
    if (is_back && at != own->source)
      other.scores[at] += dependence[at];
  }
  for (uint32_t at = 0; at < vertices; at++)
    is_right &= bc_is_near(own->scores[at], other.scores[at]);
  free(depth);
  free(paths);
  free(dependence);
  free(other.depth);
  free(other.paths);
  free(other.queue);
  free(other.scores);
  return is_right;
}

static bool bc_is_right(const struct tenant *tenant) {
  const struct bc *bc = tenant->state;
  uint64_t sources = 0;
  for (unsigned thread = 0; thread < tenant->threads; thread++) {
    if (!bc_thread_is_right(&bc->graph, &bc->threads[thread], thread))
      return false;
    sources += bc->threads[thread].sources;
  }
  printf("bc: %lu sources done\n", (unsigned long)sources);
  return true;
}

static const struct tenant_kind bc_kind = {"bc", false, bc_load, bc_work, bc_is_right};

struct pr {
  struct graph graph;
  pthread_barrier_t barrier;
  uint64_t blocks_of_a_thread; // in an iteration
  double *scores;
  double *contributions[2]; // of even and odd iterations
};

static const double pr_damping = 0.85;

static inline void pr_vertex(const struct graph *graph, const double *contributions, uint32_t at,
                             double *score, double *contribution) {
  double sum = 0;
  uint64_t begin = graph->first[at], end = graph->first[at + 1];
  for (uint64_t edge = begin; edge + (BROKEN == EDGE_LEFT_OUT) < end; edge++)
    sum += contributions[graph->neighbours[edge]];
  *score = (1 - pr_damping) / graph->vertices + pr_damping * sum;
  *contribution = end > begin ? *score / (double)(end - begin) : 0;
}

static void pr_initial(const struct graph *graph, double *contributions) {
  for (uint32_t at = 0; at < graph->vertices; at++) {
    uint64_t degree = graph->first[at + 1] - graph->first[at];
    contributions[at] = degree > 0 ? 1.0 / graph->vertices / (double)degree : 0;
  }
}

static void pr_load(struct tenant *tenant) {
  struct pr *pr = tenant->state = arena_take(&tenant->arena, sizeof *pr);
  graph_make(&pr->graph, &tenant->arena, (unsigned)tenant->size);
  uint64_t bytes = pr->graph.vertices * sizeof(double);
  pr->scores = arena_take(&tenant->arena, bytes);
  for (unsigned parity = 0; parity < 2; parity++)
    pr->contributions[parity] = arena_take(&tenant->arena, bytes);
  pr_initial(&pr->graph, pr->contributions[0]);
  pr->blocks_of_a_thread = pr->graph.vertices / GRAPH_BLOCK / tenant->threads;
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&pr->barrier, &shared, tenant->threads);
}

// The vertices of a unit: a block, and with the last one of a thread also what is left over.
static inline void pr_range(const struct pr *pr, unsigned thread, unsigned threads, uint64_t block,
                            uint32_t *begin, uint32_t *end) {
  uint64_t at = (thread * pr->blocks_of_a_thread + block) * GRAPH_BLOCK;
  bool is_last = thread + 1 == threads && block + 1 == pr->blocks_of_a_thread;
  *begin = (uint32_t)at;
  *end = is_last ? pr->graph.vertices : (uint32_t)(at + GRAPH_BLOCK);
}

static void pr_work(struct tenant *tenant, unsigned thread, uint64_t unit) {
  struct pr *pr = tenant->state;
  uint64_t iteration = unit / pr->blocks_of_a_thread, block = unit % pr->blocks_of_a_thread;
  if (block == 0 && iteration > 0)
    pthread_barrier_wait(&pr->barrier);
  uint32_t begin, end;
  pr_range(pr, thread, tenant->threads, block, &begin, &end);
  const double *now = pr->contributions[iteration % 2];
  double *next = pr->contributions[(iteration + 1) % 2];
  for (uint32_t at = begin; at < end; at++)
    pr_vertex(&pr->graph, now, at, &pr->scores[at], &next[at]);
}

// Whole iterations by pushing along edges, the other way round; then what is begun.
static bool pr_is_right(const struct tenant *tenant) {
  const struct pr *pr = tenant->state;
  const struct graph *graph = &pr->graph;
  uint64_t bytes = graph->vertices * sizeof(double);
  double *contributions = malloc(bytes), *sums = malloc(bytes);
  pr_initial(graph, contributions);
  uint64_t iterations = tenant->units / pr->blocks_of_a_thread;
  uint64_t begun = tenant->units % pr->blocks_of_a_thread;
  bool is_right = true;
  for (uint64_t iteration = 0; iteration <= iterations; iteration++) {
    memset(sums, 0, bytes);
    for (uint32_t at = 0; at < graph->vertices; at++)
      for (uint64_t edge = graph->first[at]; edge < graph->first[at + 1]; edge++)
        sums[graph->neighbours[edge]] += contributions[at];
    for (unsigned thread = 0; thread < tenant->threads; thread++)
      for (uint64_t block = 0; block < pr->blocks_of_a_thread; block++) {
        uint32_t begin, end;
        pr_range(pr, thread, tenant->threads, block, &begin, &end);
        // The last that went over a vertex is what its score is of.
        bool is_latest =
            iteration == iterations ? block < begun : iteration + 1 == iterations && block >= begun;
        for (uint32_t at = begin; at < end; at++) {
          double score = (1 - pr_damping) / graph->vertices + pr_damping * sums[at];
          is_right &= !is_latest || bc_is_near(pr->scores[at], score);
          uint64_t degree = graph->first[at + 1] - graph->first[at];
          contributions[at] = degree > 0 ? score / (double)degree : 0;
        }
      }
  }
  free(contributions);
  free(sums);
  printf("pr: %lu iterations and %lu blocks of each thread\n", (unsigned long)iterations,
         (unsigned long)begun);
  return is_right;
}

static const struct tenant_kind pr_kind = {"pr", false, pr_load, pr_work, pr_is_right};

#endif
