// SPDX-License-Identifier: Apache-2.0
//
// A hierarchical uniform grid over a scene: a cell of the grid lists the triangles that its box may
// meet, and one with many of them is a grid itself. A ray visits the cells that it crosses in
// order.
#ifndef RAY_GRID_H
#define RAY_GRID_H

#include <assert.h>
#include <float.h>
#include <stdbool.h>
#include <string.h>

#include "teapot.h"

enum {
  GRID_AXES = 3,
  GRID_DEPTH_MAX = 3,
  GRID_EDGE_MAX = 128,
  TRIANGLES_PER_CELL = 2,
  CELL_TRIANGLES_MAX = 12 // more than that make a grid of a cell, as long as it is not too deep
};

static const uint32_t no_triangle = UINT32_MAX;

struct box {
  double low[GRID_AXES], high[GRID_AXES];
};

struct grid {
  struct box box;
  int cells_along[GRID_AXES];
  double cell[GRID_AXES], cells_per_length[GRID_AXES];
  struct grid_cell *cells;
};

struct grid_cell {
  struct grid *grid; // or NULL
  uint32_t *triangles;
  uint32_t count;
};

static inline size_t cell_index(const struct grid *grid, int x, int y, int z) {
  return (size_t)((z * grid->cells_along[1] + y) * grid->cells_along[0] + x);
}

struct hit {
  double distance;
  uint32_t triangle; // `no_triangle` if there is none
  double weights[2]; // of the second and third corner
};

// A ray, and which triangles it has been tested against already: those marked with its number.
struct tracer {
  const struct scene *scene;
  const struct grid *grid;
  uint32_t *mailbox;
  uint32_t number;
  struct ball *balls; // of ray_check.h, in place of the grid
};

struct ray {
  double start[GRID_AXES], direction[GRID_AXES], inverse[GRID_AXES];
  struct vector start_point, direction_vector;
};

static inline struct ray ray_from(struct vector start, struct vector direction) {
  struct ray ray = {.start = {start.x, start.y, start.z},
                    .direction = {direction.x, direction.y, direction.z},
                    .start_point = start,
                    .direction_vector = direction};
  for (int axis = 0; axis < GRID_AXES; axis++)
    ray.inverse[axis] = ray.direction[axis] != 0 ? 1 / ray.direction[axis] : DBL_MAX;
  return ray;
}

// The intersection of Moeller and Trumbore. Of two at the same distance the first triangle counts,
// in whatever order they are tested.
static inline void intersect(const struct scene *scene, uint32_t index, const struct ray *ray,
                             struct hit *hit) {
  const struct triangle *triangle = &scene->triangles[index];
  struct vector across = vector_cross(ray->direction_vector, triangle->edges[1]);
  double determinant = vector_dot(triangle->edges[0], across);
  if (fabs(determinant) < 1e-14)
    return;
  double inverse = 1 / determinant;
  struct vector offset = vector_difference(ray->start_point, triangle->corner);
  double first = vector_dot(offset, across) * inverse;
  if (first < 0 || first > 1)
    return;
  struct vector other = vector_cross(offset, triangle->edges[0]);
  double second = vector_dot(ray->direction_vector, other) * inverse;
  if (second < 0 || first + second > 1)
    return;
  double distance = vector_dot(triangle->edges[1], other) * inverse;
  if (distance < 1e-9 || distance > hit->distance ||
      (distance == hit->distance && index >= hit->triangle))
    return;
  *hit = (struct hit){distance, index, {first, second}};
}

// Where a ray enters and leaves a box; false if it misses it.
static inline bool cross_box(const struct box *box, const struct ray *ray, double range[2]) {
  for (int axis = 0; axis < GRID_AXES; axis++) {
    double start = ray->start[axis];
    if (ray->direction[axis] == 0) {
      if (start < box->low[axis] || start > box->high[axis])
        return false;
      continue;
    }
    double one = (box->low[axis] - start) * ray->inverse[axis];
    double other = (box->high[axis] - start) * ray->inverse[axis];
    double enter = one < other ? one : other, leave = one < other ? other : one;
    range[0] = enter > range[0] ? enter : range[0];
    range[1] = leave < range[1] ? leave : range[1];
  }
  return range[0] <= range[1];
}

static inline bool trace_grid(struct tracer *tracer, const struct grid *grid, const struct ray *ray,
                              struct hit *hit);

// Tests what a cell lists; whether the nearest hit lies before the ray leaves it, at `leave`.
static inline bool trace_cell(struct tracer *tracer, const struct grid_cell *cell,
                              const struct ray *ray, double leave, struct hit *hit) {
  if (cell->grid != NULL)
    return trace_grid(tracer, cell->grid, ray, hit);
  for (uint32_t i = 0; i < cell->count; i++) {
    uint32_t triangle = cell->triangles[i];
    if (tracer->mailbox[triangle] == tracer->number)
      continue;
    tracer->mailbox[triangle] = tracer->number;
    intersect(tracer->scene, triangle, ray, hit);
  }
  return hit->distance <= leave;
}

// Visits the cells of a grid on the way of a ray (Amanatides and Woo); whether it has found the
// nearest hit.
static inline bool trace_grid(struct tracer *tracer, const struct grid *grid, const struct ray *ray,
                              struct hit *hit) {
  double range[2] = {0, hit->distance};
  if (!cross_box(&grid->box, ray, range))
    return false;
  ptrdiff_t index = 0, jump[GRID_AXES], row = 1; // in the cells
  int left[GRID_AXES];                           // cells along the axis, up to the border
  double next[GRID_AXES], way[GRID_AXES];
  for (int axis = 0; axis < GRID_AXES; axis++) {
    double place = ray->start[axis] + ray->direction[axis] * range[0] - grid->box.low[axis];
    int cell = (int)(place * grid->cells_per_length[axis]), cells = grid->cells_along[axis];
    int at = cell < 0 ? 0 : cell >= cells ? cells - 1 : cell;
    bool is_forward = ray->direction[axis] > 0, is_across = ray->direction[axis] == 0;
    double border = grid->box.low[axis] + (at + is_forward) * grid->cell[axis];
    next[axis] = is_across ? DBL_MAX : (border - ray->start[axis]) * ray->inverse[axis];
    way[axis] = grid->cell[axis] * fabs(ray->inverse[axis]);
    left[axis] = is_forward ? cells - at : at + 1;
    index += at * row;
    jump[axis] = is_forward ? row : -row;
    row *= cells;
  }
  for (;;) {
    int axis = next[0] < next[1] ? (next[0] < next[2] ? 0 : 2) : (next[1] < next[2] ? 1 : 2);
    const struct grid_cell *cell = &grid->cells[index];
    if ((cell->count > 0 && trace_cell(tracer, cell, ray, next[axis], hit)) ||
        hit->distance <= next[axis])
      return hit->triangle != no_triangle;
    if (--left[axis] == 0)
      return false;
    index += jump[axis];
    next[axis] += way[axis];
  }
}

// The nearest triangle on a ray, no farther than `distance`.
static inline struct hit trace(struct tracer *tracer, const struct ray *ray, double distance) {
  struct hit hit = {.distance = distance, .triangle = no_triangle};
  tracer->number++;
  trace_grid(tracer, tracer->grid, ray, &hit);
  return hit;
}

// Building

static const struct box nowhere = {{DBL_MAX, DBL_MAX, DBL_MAX}, {-DBL_MAX, -DBL_MAX, -DBL_MAX}};

static inline void extend_box(struct box *box, const double low[GRID_AXES],
                              const double high[GRID_AXES]) {
  for (int axis = 0; axis < GRID_AXES; axis++) {
    box->low[axis] = low[axis] < box->low[axis] ? low[axis] : box->low[axis];
    box->high[axis] = high[axis] > box->high[axis] ? high[axis] : box->high[axis];
  }
}

static inline struct box box_of_triangle(const struct triangle *triangle) {
  static const double margin = 1e-9; // for rounding
  struct vector corners[3] = {triangle->corner, vector_sum(triangle->corner, triangle->edges[0]),
                              vector_sum(triangle->corner, triangle->edges[1])};
  struct box box = nowhere;
  for (size_t i = 0; i < 3; i++) {
    const double at[] = {corners[i].x, corners[i].y, corners[i].z};
    extend_box(&box, at, at);
  }
  for (int axis = 0; axis < GRID_AXES; axis++) {
    box.low[axis] -= margin;
    box.high[axis] += margin;
  }
  return box;
}

// Cells that a box meets along each axis; if it meets none, the first lies behind the last.
struct cell_range {
  uint8_t first[GRID_AXES], last[GRID_AXES];
};

static_assert(GRID_EDGE_MAX <= UINT8_MAX, "the place of a cell fits a byte");

static inline uint8_t cell_at(const struct grid *grid, int axis, double place) {
  int cell = (int)((place - grid->box.low[axis]) * grid->cells_per_length[axis]);
  int last = grid->cells_along[axis] - 1;
  cell = cell < last ? cell : last;
  return (uint8_t)(cell > 0 ? cell : 0);
}

static inline struct cell_range cells_of_box(const struct grid *grid, const struct box *box) {
  struct cell_range range;
  for (int axis = 0; axis < GRID_AXES; axis++) {
    if (box->high[axis] < grid->box.low[axis] || box->low[axis] > grid->box.high[axis])
      return (struct cell_range){.first = {1, 1, 1}};
    range.first[axis] = cell_at(grid, axis, box->low[axis]);
    range.last[axis] = cell_at(grid, axis, box->high[axis]);
  }
  return range;
}

// What grids are built from.
struct grid_source {
  const struct box *boxes;   // of all triangles
  struct cell_range *ranges; // room for those of as many triangles, in the grid being built
};

static inline void count_triangles(struct grid *grid, const struct cell_range *ranges,
                                   uint32_t count) {
  for (const struct cell_range *range = ranges; range < ranges + count; range++)
    for (int z = range->first[2]; z <= range->last[2]; z++)
      for (int y = range->first[1]; y <= range->last[1]; y++) {
        struct grid_cell *row = &grid->cells[cell_index(grid, 0, y, z)];
        for (int x = range->first[0]; x <= range->last[0]; x++)
          row[x].count++;
      }
}

static inline void list_triangles(struct grid *grid, const struct cell_range *ranges,
                                  const uint32_t *triangles, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const struct cell_range *range = &ranges[i];
    for (int z = range->first[2]; z <= range->last[2]; z++)
      for (int y = range->first[1]; y <= range->last[1]; y++) {
        struct grid_cell *row = &grid->cells[cell_index(grid, 0, y, z)];
        for (int x = range->first[0]; x <= range->last[0]; x++)
          row[x].triangles[row[x].count++] = triangles[i];
      }
  }
}

static inline void deal_triangles(const struct grid_source *source, struct grid *grid, size_t cells,
                                  const uint32_t *triangles, uint32_t count) {
  struct cell_range *ranges = source->ranges;
  for (uint32_t i = 0; i < count; i++)
    ranges[i] = cells_of_box(grid, &source->boxes[triangles[i]]);
  count_triangles(grid, ranges, count);
  for (size_t i = 0; i < cells; i++)
    if (grid->cells[i].count > 0) {
      grid->cells[i].triangles = scene_memory(grid->cells[i].count, sizeof(uint32_t));
      grid->cells[i].count = 0;
    }
  list_triangles(grid, ranges, triangles, count);
}

// Where the cell number `index` lies in a grid.
static inline struct box box_of_cell(const struct grid *grid, size_t index) {
  struct box box;
  for (int axis = 0; axis < GRID_AXES; axis++) {
    size_t along = (size_t)grid->cells_along[axis];
    box.low[axis] = grid->box.low[axis] + (double)(index % along) * grid->cell[axis];
    box.high[axis] = box.low[axis] + grid->cell[axis];
    index /= along;
  }
  return box;
}

// Over `triangles` in `box`, in cubes as far as they fit: about one for each TRIANGLES_PER_CELL.
static inline struct grid *build_grid(const struct grid_source *source, struct box box,
                                      const uint32_t *triangles, uint32_t count, int depth) {
  struct grid *grid = scene_memory(1, sizeof *grid);
  grid->box = box;
  double volume = 1, cells = 1;
  for (int axis = 0; axis < GRID_AXES; axis++)
    volume *= box.high[axis] - box.low[axis];
  double edge = cbrt(volume * TRIANGLES_PER_CELL / count);
  for (int axis = 0; axis < GRID_AXES; axis++) {
    double length = box.high[axis] - box.low[axis], along = fmax(2, round(length / edge));
    grid->cells_along[axis] = (int)fmin(along, GRID_EDGE_MAX);
    grid->cell[axis] = length / grid->cells_along[axis];
    grid->cells_per_length[axis] = 1 / grid->cell[axis];
    cells *= grid->cells_along[axis];
  }
  grid->cells = scene_memory((size_t)cells, sizeof *grid->cells);
  deal_triangles(source, grid, (size_t)cells, triangles, count);
  for (size_t i = 0; i < (size_t)cells && depth < GRID_DEPTH_MAX; i++) {
    struct grid_cell *cell = &grid->cells[i];
    if (cell->count <= CELL_TRIANGLES_MAX || cell->count == count)
      continue;
    struct box own = box_of_cell(grid, i);
    cell->grid = build_grid(source, own, cell->triangles, cell->count, depth + 1);
    free(cell->triangles);
    cell->triangles = NULL;
  }
  return grid;
}

static inline struct grid *grid_of_scene(const struct scene *scene) {
  uint32_t *all = scene_memory(scene->count, sizeof *all);
  struct box *boxes = scene_memory(scene->count, sizeof *boxes), whole = nowhere;
  for (uint32_t i = 0; i < scene->count; i++) {
    all[i] = i;
    boxes[i] = box_of_triangle(&scene->triangles[i]);
    extend_box(&whole, boxes[i].low, boxes[i].high);
  }
  struct cell_range *ranges = scene_memory(scene->count, sizeof *ranges);
  struct grid_source source = {boxes, ranges};
  struct grid *grid = build_grid(&source, whole, all, (uint32_t)scene->count, 1);
  free(ranges);
  free(boxes);
  free(all);
  return grid;
}

#endif
