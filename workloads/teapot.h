// SPDX-License-Identifier: Apache-2.0
//
// A scene of triangles with something like a teapot: body, lid, knob, spout and handle as
// tessellated surfaces, on a table. It follows from formulas.
#ifndef TEAPOT_H
#define TEAPOT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct vector {
  double x, y, z;
};

static inline struct vector vector_sum(struct vector a, struct vector b) {
  return (struct vector){a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline struct vector vector_difference(struct vector a, struct vector b) {
  return (struct vector){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline struct vector vector_scaled(struct vector a, double factor) {
  return (struct vector){a.x * factor, a.y * factor, a.z * factor};
}

static inline double vector_dot(struct vector a, struct vector b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline struct vector vector_cross(struct vector a, struct vector b) {
  return (struct vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline struct vector vector_unit(struct vector a) {
  double length = sqrt(vector_dot(a, a));
  return length > 0 ? vector_scaled(a, 1 / length) : a;
}

enum material { CHINA, TABLE };

struct triangle {
  struct vector corner, edges[2]; // from the corner to the two others
  struct vector normals[3];       // of the surface at the corners
  enum material material;
};

struct scene {
  struct triangle *triangles;
  size_t count, capacity;
};

static inline void *scene_memory(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) {
    perror("no memory for the scene");
    exit(EXIT_FAILURE);
  }
  return memory;
}

// A circle, or the cut through a tube: `across` and the y axis are at right angles in its plane.
struct ring {
  struct vector centre, across; // the latter of length 1
  double radius;
};

// A surface is a ring for each value of a parameter from 0 to 1.
typedef struct ring (*surface)(double v);

static inline struct ring level_ring(double radius, double z) {
  return (struct ring){{0, 0, z}, {1, 0, 0}, radius};
}

static inline struct ring body_ring(double v) {
  return level_ring(0.7 + 1.1 * sin(M_PI * (0.12 + 0.70 * v)), 1.9 * v);
}

static inline struct ring lid_ring(double v) {
  return level_ring(1.32 * cos(M_PI / 2 * v), 1.9 + 0.42 * sin(M_PI / 2 * v));
}

static inline struct ring knob_ring(double v) {
  return level_ring(0.2 * sin(M_PI * v), 2.48 - 0.2 * cos(M_PI * v));
}

// Around a curve in the plane y = 0, which goes in `direction` there.
static inline struct ring tube_ring(struct vector centre, struct vector direction, double radius) {
  return (struct ring){centre, vector_unit((struct vector){-direction.z, 0, direction.x}), radius};
}

static inline struct ring spout_ring(double v) {
  struct vector centre = {1.5 + 1.3 * v, 0, 0.6 + 1.3 * v * v};
  return tube_ring(centre, (struct vector){1.3, 0, 2.6 * v}, 0.38 - 0.22 * v);
}

static inline struct ring handle_ring(double v) {
  double angle = M_PI * (0.5 + v);
  struct vector centre = {-1.45 + 0.95 * cos(angle), 0, 1.0 + 0.6 * sin(angle)};
  struct vector direction = {-0.95 * sin(angle), 0, 0.6 * cos(angle)};
  return tube_ring(centre, direction, 0.15);
}

struct turn {
  double cosine, sine;
};

static inline struct turn turn_of(double turns) {
  return (struct turn){cos(2 * M_PI * turns), sin(2 * M_PI * turns)};
}

static inline struct vector ring_point(const struct ring *ring, struct turn turn) {
  struct vector side = vector_scaled(ring->across, ring->radius * turn.cosine);
  return vector_sum(vector_sum(ring->centre, side),
                    (struct vector){0, ring->radius * turn.sine, 0});
}

struct vertex {
  struct vector place, normal;
};

// Where the vertices of every ring lie on it, and a step to either side of them.
struct turns {
  struct turn at, before, after;
};

static const double normal_step = 1e-4;

static inline struct turns *find_turns(size_t columns) {
  struct turns *turns = scene_memory(columns + 1, sizeof *turns);
  for (size_t column = 0; column <= columns; column++) {
    double turn = (double)column / (double)columns;
    turns[column] =
        (struct turns){turn_of(turn), turn_of(turn - normal_step), turn_of(turn + normal_step)};
  }
  return turns;
}

// The normals follow from the points nearby.
static inline void find_vertices(surface ring_of, double v, const struct turns *turns,
                                 size_t columns, struct vertex *vertices) {
  bool is_low = v < 0.5; // then the other ring is a step up, else down, which stays inside
  struct ring ring = ring_of(v), other = ring_of(is_low ? v + normal_step : v - normal_step);
  for (size_t column = 0; column <= columns; column++) {
    const struct turns *turn = &turns[column];
    struct vector place = ring_point(&ring, turn->at);
    struct vector along =
        vector_difference(ring_point(&ring, turn->after), ring_point(&ring, turn->before));
    struct vector up = vector_difference(ring_point(&other, turn->at), place);
    bool is_pole = vector_dot(along, along) < 1e-16;
    struct vector normal = is_pole ? (struct vector){0, 0, -1} : vector_cross(along, up);
    normal = is_low ? normal : vector_scaled(normal, -1);
    vertices[column] = (struct vertex){place, vector_unit(normal)};
  }
}

static inline void add_triangle(struct scene *scene, const struct vertex *first,
                                const struct vertex *second, const struct vertex *third) {
  struct triangle triangle = {.corner = first->place,
                              .edges = {vector_difference(second->place, first->place),
                                        vector_difference(third->place, first->place)},
                              .normals = {first->normal, second->normal, third->normal},
                              .material = CHINA};
  struct vector area = vector_cross(triangle.edges[0], triangle.edges[1]);
  if (vector_dot(area, area) > 1e-24) // at a pole one of the two of a cell has none
    scene->triangles[scene->count++] = triangle;
}

static inline void add_surface(struct scene *scene, surface ring_of, size_t columns, size_t rows) {
  struct turns *turns = find_turns(columns);
  struct vertex *vertices = scene_memory(2 * (columns + 1), sizeof *vertices);
  struct vertex *low = vertices, *high = vertices + columns + 1;
  find_vertices(ring_of, 0, turns, columns, low);
  for (size_t row = 1; row <= rows; row++) {
    find_vertices(ring_of, (double)row / (double)rows, turns, columns, high);
    for (size_t column = 0; column < columns; column++) {
      add_triangle(scene, &low[column], &low[column + 1], &high[column + 1]);
      add_triangle(scene, &low[column], &high[column + 1], &high[column]);
    }
    struct vertex *swapped = low;
    low = high;
    high = swapped;
  }
  free(vertices);
  free(turns);
}

static inline void add_table(struct scene *scene) {
  static const double edge = 7;
  const struct vector corners[4] = {
      {-edge, -edge, 0}, {edge, -edge, 0}, {edge, edge, 0}, {-edge, edge, 0}};
  for (size_t half = 0; half < 2; half++) {
    struct triangle triangle = {.corner = corners[0], .material = TABLE};
    triangle.edges[0] = vector_difference(corners[1 + half], corners[0]);
    triangle.edges[1] = vector_difference(corners[2 + half], corners[0]);
    for (size_t i = 0; i < 3; i++)
      triangle.normals[i] = (struct vector){0, 0, 1};
    scene->triangles[scene->count++] = triangle;
  }
}

// The body has `edge` x `edge` cells of two triangles, the others fewer in proportion to their
// size.
static inline struct scene scene_of_teapot(size_t edge) {
  struct scene scene = {.capacity = 2 * (2 * edge * edge + 4)};
  scene.triangles = scene_memory(scene.capacity, sizeof *scene.triangles);
  size_t half = (edge + 1) / 2, quarter = (edge + 3) / 4;
  add_surface(&scene, body_ring, edge, edge);
  add_surface(&scene, lid_ring, edge, quarter);
  add_surface(&scene, knob_ring, quarter, quarter);
  add_surface(&scene, spout_ring, half, half);
  add_surface(&scene, handle_ring, quarter, half);
  add_table(&scene);
  return scene;
}

#endif
