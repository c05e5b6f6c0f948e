// SPDX-License-Identifier: Apache-2.0
//
// Two 3-D kernels that are bound by bandwidth. `bwaves` multiplies a matrix of 5 x 5 blocks, each
// point with itself and its six neighbours, by a vector: what the solver of SPEC's 503.bwaves does
// most. `roms` advances a tracer by the divergence of its fluxes and by vertical mixing, as the
// ocean model does. A unit is a row of points; edges are periodic.
#ifndef STENCIL_H
#define STENCIL_H

#include <math.h>

#include "broken.h"
#include "scramble.h"
#include "tenant.h"

enum { STENCIL_UNKNOWNS = 5, STENCIL_NEIGHBOURS = 7, STENCIL_FIELDS = 6 };

struct stencil {
  uint64_t edge;
  uint64_t planes_of_a_thread;
  // bwaves: a block for each point and neighbour, the vector, the product.
  double *blocks, *vector, *product;
  // roms: velocities u, v, w, the tracer, thickness, vertical mixing; the tracer afterwards.
  double *fields[STENCIL_FIELDS], *next;
};

enum { FIELD_EASTWARD, FIELD_NORTHWARD, FIELD_UPWARD, FIELD_TRACER, FIELD_THICKNESS, FIELD_MIXING };

static inline uint64_t stencil_point(const struct stencil *grid, uint64_t i, uint64_t j,
                                     uint64_t k) {
  return (k * grid->edge + j) * grid->edge + i;
}

static inline uint64_t stencil_up(const struct stencil *grid, uint64_t at) {
  return at + 1 == grid->edge ? 0 : at + 1;
}

static inline uint64_t stencil_down(const struct stencil *grid, uint64_t at) {
  if (BROKEN == ROW_SHIFTED)
    return stencil_up(grid, at);
  return at == 0 ? grid->edge - 1 : at - 1;
}

// From -1 to 1.
static inline double stencil_initial(uint64_t position) {
  return (double)(scramble(position) >> 11) * 0x1p-52 - 1;
}

// The planes of the threads, one behind the other.
static struct stencil *stencil_new(struct tenant *tenant) {
  struct stencil *grid = tenant->state = arena_take(&tenant->arena, sizeof *grid);
  grid->edge = tenant->size;
  grid->planes_of_a_thread = tenant->size / tenant->threads;
  if (grid->planes_of_a_thread == 0) {
    fputs("a grid needs a plane for each thread\n", stderr);
    exit(EXIT_FAILURE);
  }
  return grid;
}

static double *stencil_filled(struct arena *arena, uint64_t count, uint64_t seed) {
  double *values = arena_take(arena, count * sizeof *values);
  for (uint64_t i = 0; i < count; i++)
    values[i] = stencil_initial(seed + i);
  return values;
}

// The row of a thread's unit; behind its last it begins again.
static inline void stencil_row(const struct stencil *grid, unsigned thread, uint64_t unit,
                               uint64_t *j, uint64_t *k) {
  uint64_t row = unit % (grid->planes_of_a_thread * grid->edge);
  *j = row % grid->edge;
  *k = thread * grid->planes_of_a_thread + row / grid->edge;
}

static void bwaves_load(struct tenant *tenant) {
  struct stencil *grid = stencil_new(tenant);
  uint64_t points = grid->edge * grid->edge * grid->edge;
  uint64_t block = STENCIL_UNKNOWNS * STENCIL_UNKNOWNS;
  grid->blocks = stencil_filled(&tenant->arena, points * STENCIL_NEIGHBOURS * block, 1);
  grid->vector = stencil_filled(&tenant->arena, points * STENCIL_UNKNOWNS, UINT64_C(1) << 40);
  grid->product = arena_take(&tenant->arena, points * STENCIL_UNKNOWNS * sizeof(double));
}

static inline void bwaves_point(const struct stencil *grid, uint64_t i, uint64_t j, uint64_t k,
                                double *product) {
  const uint64_t neighbours[STENCIL_NEIGHBOURS] = {
      stencil_point(grid, i, j, k),
      stencil_point(grid, stencil_up(grid, i), j, k),
      stencil_point(grid, stencil_down(grid, i), j, k),
      stencil_point(grid, i, stencil_up(grid, j), k),
      stencil_point(grid, i, stencil_down(grid, j), k),
      stencil_point(grid, i, j, stencil_up(grid, k)),
      stencil_point(grid, i, j, stencil_down(grid, k)),
  };
  const double *block =
      &grid->blocks[neighbours[0] * STENCIL_NEIGHBOURS * STENCIL_UNKNOWNS * STENCIL_UNKNOWNS];
  double sums[STENCIL_UNKNOWNS] = {0};
  for (unsigned n = 0; n < STENCIL_NEIGHBOURS; n++) {
    const double *vector = &grid->vector[neighbours[n] * STENCIL_UNKNOWNS];
    for (unsigned row = 0; row < STENCIL_UNKNOWNS; row++)
      for (unsigned column = 0; column < STENCIL_UNKNOWNS; column++)
        sums[row] += *block++ * vector[column];
  }
  for (unsigned row = 0; row < STENCIL_UNKNOWNS; row++)
    product[row] = sums[row];
}

static void bwaves_work(struct tenant *tenant, unsigned thread, uint64_t unit) {
  const struct stencil *grid = tenant->state;
  uint64_t j, k;
  stencil_row(grid, thread, unit, &j, &k);
  for (uint64_t i = 0; i < grid->edge; i++)
    bwaves_point(grid, i, j, k, &grid->product[stencil_point(grid, i, j, k) * STENCIL_UNKNOWNS]);
}

static void roms_load(struct tenant *tenant) {
  struct stencil *grid = stencil_new(tenant);
  uint64_t points = grid->edge * grid->edge * grid->edge;
  for (unsigned field = 0; field < STENCIL_FIELDS; field++)
    grid->fields[field] = stencil_filled(&tenant->arena, points, (uint64_t)field << 40);
  grid->next = arena_take(&tenant->arena, points * sizeof(double));
}

// A flux through the face between a point and the next: upwind.
static inline double roms_flux(double velocity, double here, double there) {
  return 0.5 * (velocity * (here + there) - fabs(velocity) * (there - here));
}

static inline double roms_point(const struct stencil *grid, uint64_t i, uint64_t j, uint64_t k) {
  const double step = 0.05;
  const double *u = grid->fields[FIELD_EASTWARD], *v = grid->fields[FIELD_NORTHWARD];
  const double *w = grid->fields[FIELD_UPWARD], *t = grid->fields[FIELD_TRACER];
  const double *h = grid->fields[FIELD_THICKNESS], *mixing = grid->fields[FIELD_MIXING];
  uint64_t at = stencil_point(grid, i, j, k);
  uint64_t east = stencil_point(grid, stencil_up(grid, i), j, k);
  uint64_t west = stencil_point(grid, stencil_down(grid, i), j, k);
  uint64_t north = stencil_point(grid, i, stencil_up(grid, j), k);
  uint64_t south = stencil_point(grid, i, stencil_down(grid, j), k);
  uint64_t above = stencil_point(grid, i, j, stencil_up(grid, k));
  uint64_t below = stencil_point(grid, i, j, stencil_down(grid, k));
  double sideways = roms_flux(u[at], t[at], t[east]) - roms_flux(u[west], t[west], t[at]) +
                    roms_flux(v[at], t[at], t[north]) - roms_flux(v[south], t[south], t[at]);
  double upwards = roms_flux(w[at], t[at], t[above]) - roms_flux(w[below], t[below], t[at]);
  double mixed = mixing[at] * (t[above] - t[at]) - mixing[below] * (t[at] - t[below]);
  return t[at] - step * (sideways + upwards - mixed) / (2 + h[at]);
}

static void roms_work(struct tenant *tenant, unsigned thread, uint64_t unit) {
  const struct stencil *grid = tenant->state;
  uint64_t j, k;
  stencil_row(grid, thread, unit, &j, &k);
  for (uint64_t i = 0; i < grid->edge; i++)
    grid->next[stencil_point(grid, i, j, k)] = roms_point(grid, i, j, k);
}

// Whether every row that a thread has been over has what its points give, from inputs that are
// still what they were.
static bool stencil_rows_are_right(const struct tenant *tenant,
                                   bool (*row_is_right)(const struct stencil *, uint64_t j,
                                                        uint64_t k)) {
  const struct stencil *grid = tenant->state;
  uint64_t rows = grid->planes_of_a_thread * grid->edge;
  for (unsigned thread = 0; thread < tenant->threads; thread++)
    for (uint64_t unit = 0; unit < tenant->units && unit < rows; unit++) {
      uint64_t j, k;
      stencil_row(grid, thread, unit, &j, &k);
      if (!row_is_right(grid, j, k))
        return false;
    }
  printf("stencil: %lu rows of each thread\n", (unsigned long)tenant->units);
  return true;
}

// The product once more, by rows of the whole matrix and from the inputs' definition.
static bool bwaves_row_is_right(const struct stencil *grid, uint64_t j, uint64_t k) {
  const uint64_t edge = grid->edge, block = STENCIL_UNKNOWNS * STENCIL_UNKNOWNS;
  static const int away[STENCIL_NEIGHBOURS][3] = {{0, 0, 0},  {1, 0, 0}, {-1, 0, 0}, {0, 1, 0},
                                                  {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
  for (uint64_t i = 0; i < edge; i++) {
    uint64_t at = stencil_point(grid, i, j, k);
    for (unsigned row = 0; row < STENCIL_UNKNOWNS; row++) {
      double sum = 0;
      for (unsigned n = 0; n < STENCIL_NEIGHBOURS; n++) {
        uint64_t there = stencil_point(grid, (i + edge + (uint64_t)away[n][0]) % edge,
                                       (j + edge + (uint64_t)away[n][1]) % edge,
                                       (k + edge + (uint64_t)away[n][2]) % edge);
        for (unsigned column = 0; column < STENCIL_UNKNOWNS; column++)
          sum += stencil_initial(1 + (at * STENCIL_NEIGHBOURS + n) * block +
                                 row * STENCIL_UNKNOWNS + column) *
                 stencil_initial((UINT64_C(1) << 40) + there * STENCIL_UNKNOWNS + column);
      }
      if (!(fabs(grid->product[at * STENCIL_UNKNOWNS + row] - sum) < 1e-12))
        return false;
    }
  }
  return true;
}

static bool bwaves_is_right(const struct tenant *tenant) {
  return stencil_rows_are_right(tenant, bwaves_row_is_right);
}

static inline double roms_initial(unsigned field, uint64_t at) {
  return stencil_initial(((uint64_t)field << 40) + at);
}

// What flows through a face comes from the side that the velocity comes from.
static inline double roms_carried(unsigned field, uint64_t face, uint64_t next) {
  double velocity = roms_initial(field, face);
  return velocity * roms_initial(FIELD_TRACER, velocity > 0 ? face : next);
}

// The tracer once more: what leaves a point through its faces, from the inputs' definition.
static bool roms_row_is_right(const struct stencil *grid, uint64_t j, uint64_t k) {
  const uint64_t edge = grid->edge;
  for (uint64_t i = 0; i < edge; i++) {
    uint64_t at = stencil_point(grid, i, j, k);
    const uint64_t before[3] = {stencil_point(grid, (i + edge - 1) % edge, j, k),
                                stencil_point(grid, i, (j + edge - 1) % edge, k),
                                stencil_point(grid, i, j, (k + edge - 1) % edge)};
    const uint64_t behind[3] = {stencil_point(grid, (i + 1) % edge, j, k),
                                stencil_point(grid, i, (j + 1) % edge, k),
                                stencil_point(grid, i, j, (k + 1) % edge)};
    double here = roms_initial(FIELD_TRACER, at), leaves = 0;
    for (unsigned axis = 0; axis < 3; axis++)
      leaves += roms_carried(FIELD_EASTWARD + axis, at, behind[axis]) -
                roms_carried(FIELD_EASTWARD + axis, before[axis], at);
    leaves -= roms_initial(FIELD_MIXING, at) * (roms_initial(FIELD_TRACER, behind[2]) - here);
    leaves +=
        roms_initial(FIELD_MIXING, before[2]) * (here - roms_initial(FIELD_TRACER, before[2]));
    double after = here - 0.05 * leaves / (2 + roms_initial(FIELD_THICKNESS, at));
    if (!(fabs(grid->next[at] - after) < 1e-12))
      return false;
  }
  return true;
}

static bool roms_is_right(const struct tenant *tenant) {
  return stencil_rows_are_right(tenant, roms_row_is_right);
}

static const struct tenant_kind bwaves_kind = {"bwaves", false, bwaves_load, bwaves_work,
                                               bwaves_is_right};
static const struct tenant_kind roms_kind = {"roms", false, roms_load, roms_work, roms_is_right};

#endif
