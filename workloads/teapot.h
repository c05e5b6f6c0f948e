// SPDX-License-Identifier: Apache-2.0
//
// A scene of triangles with something like a teapot: body, lid, knob, spout and handle as
// tessellated surfaces of two parameters, on a table. It follows from formulas.
#ifndef TEAPOT_H
#define TEAPOT_H

#include <math.h>
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

// A point of a surface, both parameters from 0 to 1.
typedef struct vector (*surface)(double u, double v);

static inline struct vector on_circle(double radius, double turns, double z) {
  return (struct vector){radius * cos(2 * M_PI * turns), radius * sin(2 * M_PI * turns), z};
}

static inline struct vector body_point(double u, double v) {
  return on_circle(0.7 + 1.1 * sin(M_PI * (0.12 + 0.70 * v)), u, 1.9 * v);
}

static inline struct vector lid_point(double u, double v) {
  return on_circle(1.32 * cos(M_PI / 2 * v), u, 1.9 + 0.42 * sin(M_PI / 2 * v));
}

static inline struct vector knob_point(double u, double v) {
  return on_circle(0.2 * sin(M_PI * v), u, 2.48 - 0.2 * cos(M_PI * v));
}

// Around a curve in the plane y = 0, which goes in `direction` there.
static inline struct vector tube_point(struct vector centre, struct vector direction, double radius,
                                       double turns) {
  struct vector across = vector_unit((struct vector){-direction.z, 0, direction.x});
  struct vector side = vector_scaled(across, radius * cos(2 * M_PI * turns));
  return vector_sum(vector_sum(centre, side),
                    (struct vector){0, radius * sin(2 * M_PI * turns), 0});
}

static inline struct vector spout_point(double u, double v) {
  struct vector centre = {1.5 + 1.3 * v, 0, 0.6 + 1.3 * v * v};
  return tube_point(centre, (struct vector){1.3, 0, 2.6 * v}, 0.38 - 0.22 * v, u);
}

static inline struct vector handle_point(double u, double v) {
  double angle = M_PI * (0.5 + v);
  struct vector centre = {-1.45 + 0.95 * cos(angle), 0, 1.0 + 0.6 * sin(angle)};
  struct vector direction = {-0.95 * sin(angle), 0, 0.6 * cos(angle)};
  return tube_point(centre, direction, 0.15, u);
}

static inline struct vector surface_normal(surface point, double u, double v) {
  static const double step = 1e-4;
  double low = v < 0.5 ? v : v - step; // stays inside
  struct vector along = vector_difference(point(u + step, v), point(u - step, v));
  struct vector up = vector_difference(point(u, low + step), point(u, low));
  if (vector_dot(along, along) < 1e-16) // a pole
    return vector_unit((struct vector){0, 0, v < 0.5 ? -1 : 1});
  return vector_unit(vector_cross(along, up));
}

// One of the triangles of a cell of parameters; `corners` are three pairs of them.
static inline void add_triangle(struct scene *scene, surface point, const double corners[3][2]) {
  struct vector at[3];
  struct triangle triangle = {.material = CHINA};
  for (size_t i = 0; i < 3; i++) {
    at[i] = point(corners[i][0], corners[i][1]);
    triangle.normals[i] = surface_normal(point, corners[i][0], corners[i][1]);
  }
  triangle.corner = at[0];
  triangle.edges[0] = vector_difference(at[1], at[0]);
  triangle.edges[1] = vector_difference(at[2], at[0]);
  struct vector area = vector_cross(triangle.edges[0], triangle.edges[1]);
  if (vector_dot(area, area) > 1e-24) // at a pole one of the two has none
    scene->triangles[scene->count++] = triangle;
}

static inline void add_surface(struct scene *scene, surface point, size_t columns, size_t rows) {
  for (size_t row = 0; row < rows; row++)
    for (size_t column = 0; column < columns; column++) {
      double left = (double)column / (double)columns,
             right = (double)(column + 1) / (double)columns;
      double low = (double)row / (double)rows, high = (double)(row + 1) / (double)rows;
      add_triangle(scene, point, (const double[3][2]){{left, low}, {right, low}, {right, high}});
      add_triangle(scene, point, (const double[3][2]){{left, low}, {right, high}, {left, high}});
    }
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
  add_surface(&scene, body_point, edge, edge);
  add_surface(&scene, lid_point, edge, quarter);
  add_surface(&scene, knob_point, quarter, quarter);
  add_surface(&scene, spout_point, half, half);
  add_surface(&scene, handle_point, quarter, half);
  add_table(&scene);
  return scene;
}

#endif
