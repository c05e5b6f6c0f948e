// SPDX-License-Identifier: Apache-2.0
//
// The nearest triangle on a ray without a grid: what the picture is checked against.
#ifndef RAY_CHECK_H
#define RAY_CHECK_H

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "ray_grid.h"
#include "teapot.h"

// Triangles that follow each other in the scene lie together: a ray that misses a ball around
// `HEAP` of them misses them all.
enum { HEAP = 32 };

struct ball {
  struct vector centre;
  double square; // of the radius
};

static inline struct ball ball_around(const struct scene *scene, size_t first) {
  size_t end = first + HEAP < scene->count ? first + HEAP : scene->count;
  struct vector sum = {0};
  struct ball ball = {0};
  for (size_t i = first; i < end; i++)
    sum = vector_sum(sum, scene->triangles[i].corner);
  ball.centre = vector_scaled(sum, 1 / (double)(end - first));
  for (size_t i = first; i < end; i++) {
    const struct triangle *triangle = &scene->triangles[i];
    struct vector corner = vector_difference(triangle->corner, ball.centre);
    struct vector corners[3] = {corner, vector_sum(corner, triangle->edges[0]),
                                vector_sum(corner, triangle->edges[1])};
    for (size_t j = 0; j < 3; j++)
      ball.square = fmax(ball.square, vector_dot(corners[j], corners[j]) * (1 + 1e-9));
  }
  return ball;
}

static inline struct ball *balls_around(const struct scene *scene) {
  struct ball *balls = scene_memory(scene->count / HEAP + 1, sizeof *balls);
  for (size_t first = 0; first < scene->count; first += HEAP)
    balls[first / HEAP] = ball_around(scene, first);
  return balls;
}

static inline bool may_hit(const struct ball *ball, const struct ray *ray) {
  struct vector offset = vector_difference(ball->centre, ray->start_point);
  struct vector moment = vector_cross(offset, ray->direction_vector); // which has length 1
  return vector_dot(moment, moment) <= ball->square;
}

// Without the grid.
static inline struct hit trace_plainly(struct tracer *tracer, const struct ray *ray,
                                       double distance) {
  struct hit hit = {.distance = distance, .triangle = no_triangle};
  for (uint32_t first = 0; first < tracer->scene->count; first += HEAP)
    if (may_hit(&tracer->balls[first / HEAP], ray))
      for (uint32_t i = first; i < first + HEAP && i < tracer->scene->count; i++)
        intersect(tracer->scene, i, ray, &hit);
  return hit;
}

#endif
