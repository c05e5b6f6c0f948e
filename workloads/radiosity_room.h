// SPDX-License-Identifier: Apache-2.0
//
// The room of the radiosity example: its patches (parallelograms and triangles), and the tree of
// planes that divides space between them, through which rays are cast.
#ifndef RADIOSITY_ROOM_H
#define RADIOSITY_ROOM_H

#include <math.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "persist.h"

struct vector {
  double x, y, z;
};

static inline struct vector sum(struct vector a, struct vector b) {
  return (struct vector){a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline struct vector difference(struct vector a, struct vector b) {
  return (struct vector){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline struct vector scaled(struct vector a, double factor) {
  return (struct vector){a.x * factor, a.y * factor, a.z * factor};
}

static inline double dot(struct vector a, struct vector b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline struct vector cross(struct vector a, struct vector b) {
  return (struct vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

enum { PATCHES_MAX = 64, TRIANGLE = 3, PARALLELOGRAM = 4 };

// In the pool. What the modelling makes of the input is in lines of its own.
struct patch {
  alignas(LINE_BYTES) struct vector corner, sides[2];
  float emission, reflectance;
  uint32_t corners;                          // TRIANGLE or PARALLELOGRAM
  uint32_t is_boundary;                      // everything is in front of it, so it blocks no ray
  alignas(LINE_BYTES) struct vector axes[2]; // a product with them gives coordinates along a side
  double height;                             // of the plane above the origin, along the normal
  struct vector normal;                      // of unit length, towards the side that is seen
};

static inline double height_above(const struct patch *patch, struct vector point) {
  return dot(patch->normal, point) - patch->height;
}

static inline void make_plane(struct patch *patch) {
  struct vector normal = cross(patch->sides[0], patch->sides[1]);
  double square = dot(normal, normal);
  patch->axes[0] = scaled(cross(patch->sides[1], normal), 1 / square);
  patch->axes[1] = scaled(cross(normal, patch->sides[0]), 1 / square);
  patch->normal = scaled(normal, 1 / sqrt(square));
  patch->height = dot(patch->normal, patch->corner);
}

static inline double patch_area(const struct patch *patch) {
  struct vector normal = cross(patch->sides[0], patch->sides[1]);
  return sqrt(dot(normal, normal)) * (patch->corners == TRIANGLE ? 0.5 : 1);
}

static inline struct vector patch_corner(const struct patch *patch, unsigned corner) {
  struct vector point = patch->corner;
  if (corner == 1 || corner == 2)
    point = sum(point, patch->sides[0]);
  if (corner >= 2 && patch->corners == PARALLELOGRAM)
    point = sum(point, patch->sides[1]);
  else if (corner == 2)
    point = sum(patch->corner, patch->sides[1]);
  return point;
}

// The model. What stands in the middle of the room comes before the rest: its planes divide space
// best.

struct model {
  struct patch *patches;
  uint32_t count;
};

static inline void add_patch(struct model *model, unsigned corners, struct vector corner,
                             struct vector side, struct vector other, float reflectance,
                             float emission) {
  model->patches[model->count++] = (struct patch){.corner = corner,
                                                  .sides = {side, other},
                                                  .corners = corners,
                                                  .reflectance = reflectance,
                                                  .emission = emission};
}

enum { BOX_SIDES = 4, BOX_WITH_TOP = 5, BOX_CLOSED = 6 };

// Its faces look outwards, or inwards if it is a room. Those left out are the bottom, then the top.
static inline void add_box(struct model *model, struct vector low, struct vector high,
                           unsigned faces, bool is_room, float reflectance) {
  struct vector size = difference(high, low);
  struct vector x = {size.x, 0, 0}, y = {0, size.y, 0}, z = {0, 0, size.z};
  const struct {
    struct vector corner, side, other;
  } outside[BOX_CLOSED] = {{low, x, z},         {low, z, y},         {sum(low, x), y, z},
                           {sum(low, y), z, x}, {sum(low, z), x, y}, {low, y, x}};
  for (unsigned face = 0; face < faces; face++)
    add_patch(model, PARALLELOGRAM, outside[face].corner,
              is_room ? outside[face].other : outside[face].side,
              is_room ? outside[face].side : outside[face].other, reflectance, 0);
}

// A tent over a rectangle of the floor: two slopes and two gables.
static inline void add_tent(struct model *model, struct vector low, struct vector size,
                            float reflectance) {
  struct vector along = {size.x, 0, 0}, across = {0, size.y, 0};
  struct vector rise = {0, size.y / 2, size.z}, fall = {0, -size.y / 2, size.z};
  add_patch(model, PARALLELOGRAM, low, along, rise, reflectance, 0);
  add_patch(model, PARALLELOGRAM, sum(low, across), fall, along, reflectance, 0);
  add_patch(model, TRIANGLE, low, rise, across, reflectance, 0);
  add_patch(model, TRIANGLE, sum(low, along), across, rise, reflectance, 0);
}

// A room of 12 by 11 by 7 metres, in units of a centimetre.
static inline void make_model(struct model *model) {
  add_box(model, (struct vector){0, 0, 0}, (struct vector){1200, 1100, 700}, BOX_CLOSED, true,
          0.85f);
  for (uint32_t patch = 0; patch < model->count; patch++)
    model->patches[patch].is_boundary = true;
  add_box(model, (struct vector){380, 260, 180}, (struct vector){740, 500, 195}, BOX_CLOSED, false,
          0.6f); // the top of a table
  add_box(model, (struct vector){70, 490, 0}, (struct vector){230, 700, 330}, BOX_WITH_TOP, false,
          0.5f); // cupboard
  for (unsigned trestle = 0; trestle < 2; trestle++) {
    struct vector low = {trestle == 0 ? 400 : 700, 290, 0};
    add_box(model, low, sum(low, (struct vector){20, 180, 180}), BOX_SIDES, false, 0.6f);
  }
  add_tent(model, (struct vector){540, 610, 0}, (struct vector){200, 120, 140}, 0.4f);
  add_box(model, (struct vector){80, 80, 0}, (struct vector){230, 190, 110}, BOX_WITH_TOP, false,
          0.5f); // chest
  add_box(model, (struct vector){500, 450, 650}, (struct vector){700, 650, 680}, BOX_CLOSED, false,
          0.3f);
  model->patches[model->count - 1].emission = 60; // the bottom of the lamp
}

// The tree. A patch that reaches to both sides of a plane is found on both of them.

typedef uint32_t node_index; // 0: none; as a node it is the one above the root, without a patch

enum side { FRONT, BACK };

struct node {
  uint32_t patch; // and 1; 0 in a node that is not used
  node_index children[2];
  uint32_t reserved;
};

struct space {
  const struct patch *patches;
  struct node *nodes;
  node_index used, capacity;
};

// A piece of a patch is taken to be on one side of a plane if it reaches less than this beyond it.
static const double thickness = 1e-6;

enum { PIECE_CORNERS_MAX = 32 };

struct piece {
  unsigned corners;
  struct vector points[PIECE_CORNERS_MAX];
};

// The part of a convex piece on one side of a plane.
static inline struct piece cut(const struct piece *piece, const struct patch *plane,
                               enum side side) {
  struct piece part = {0};
  if (piece->corners >= PIECE_CORNERS_MAX - 1)
    return *piece; // too fine to cut: all of it goes to both sides
  for (unsigned i = 0; i < piece->corners; i++) {
    struct vector from = piece->points[i], to = piece->points[(i + 1) % piece->corners];
    double begin = height_above(plane, from), end = height_above(plane, to);
    if (side == FRONT ? begin >= 0 : begin <= 0)
      part.points[part.corners++] = from;
    if ((begin < 0 && end > 0) || (begin > 0 && end < 0))
      part.points[part.corners++] = sum(from, scaled(difference(to, from), begin / (begin - end)));
  }
  return part;
}

typedef void (*node_visitor)(void *context, node_index node);

// Inserts a piece of a patch below a node; shows the nodes that it writes to the visitor.
static inline void insert_piece(struct space *space, node_index parent, enum side side,
                                const struct piece *piece, uint32_t patch, node_visitor visitor,
                                void *context) {
  for (node_index index; (index = space->nodes[parent].children[side]) != 0; parent = index) {
    const struct patch *plane = &space->patches[space->nodes[index].patch - 1];
    double low = 0, high = 0;
    for (unsigned i = 0; i < piece->corners; i++) {
      double height = height_above(plane, piece->points[i]);
      low = height < low ? height : low;
      high = height > high ? height : high;
    }
    side = low < -thickness ? BACK : FRONT;
    if (low < -thickness && high > thickness) {
      struct piece front = cut(piece, plane, FRONT), back = cut(piece, plane, BACK);
      insert_piece(space, index, FRONT, &front, patch, visitor, context);
      insert_piece(space, index, BACK, &back, patch, visitor, context);
      return;
    }
  }
  if (space->used == space->capacity) {
    fprintf(stderr, "radiosity: no room for more nodes\n");
    exit(EXIT_FAILURE);
  }
  node_index index = space->used++;
  space->nodes[index] = (struct node){.patch = patch + 1};
  space->nodes[parent].children[side] = index;
  visitor(context, index);
  visitor(context, parent);
}

static inline void insert_patch(struct space *space, uint32_t patch, node_visitor visitor,
                                void *context) {
  struct piece piece = {.corners = space->patches[patch].corners};
  for (unsigned i = 0; i < piece.corners; i++)
    piece.points[i] = patch_corner(&space->patches[patch], i);
  insert_piece(space, 0, FRONT, &piece, patch, visitor, context);
}

// Rays

struct ray {
  struct vector start, direction; // ends at start + direction
  uint32_t ends[2];               // the patches on which it starts and ends do not block it
};

// Whether the ray goes through the patch, of which it is known how high it starts and rises. This
// depends on no tree, so the order in which patches were inserted changes no answer.
static inline bool goes_through(const struct ray *ray, const struct patch *patch, double height,
                                double rise) {
  if (height * (height + rise) >= 0)
    return false;
  struct vector point = sum(ray->start, scaled(ray->direction, -height / rise));
  struct vector offset = difference(point, patch->corner);
  double first = dot(offset, patch->axes[0]), second = dot(offset, patch->axes[1]);
  if (first < 0 || second < 0)
    return false;
  return patch->corners == TRIANGLE ? first + second <= 1 : first <= 1 && second <= 1;
}

// Whether anything below the node blocks the ray between `begin` and `end`, as fractions of it.
static inline bool is_blocked(const struct space *space, node_index index, const struct ray *ray,
                              double begin, double end) {
  const double margin = 10 * thickness;
  while (index != 0) {
    const struct node *node = &space->nodes[index];
    const struct patch *patch = &space->patches[node->patch - 1];
    double height = height_above(patch, ray->start), rise = dot(patch->normal, ray->direction);
    double first = height + rise * begin, last = height + rise * end;
    if (first > margin && last > margin) {
      index = node->children[FRONT];
      continue;
    }
    if (first < -margin && last < -margin) {
      index = node->children[BACK];
      continue;
    }
    uint32_t number = node->patch - 1;
    if (number != ray->ends[0] && number != ray->ends[1] && goes_through(ray, patch, height, rise))
      return true;
    if (node->children[BACK] == 0 || node->children[FRONT] == 0) {
      index = node->children[BACK] + node->children[FRONT];
      continue;
    }
    // Both parts reach a little over the plane, as the pieces of patches may.
    double slack = 2 * margin / (rise < 0 ? -rise : rise), crossing = -height / rise;
    double until = crossing + slack < end ? crossing + slack : end;
    double from = crossing - slack > begin ? crossing - slack : begin;
    bool is_grazing = rise < margin && rise > -margin;
    double near_end = is_grazing ? end : until, far_begin = is_grazing ? begin : from;
    enum side near = rise < 0 ? FRONT : BACK;
    if (is_blocked(space, node->children[near], ray, begin, near_end))
      return true;
    index = node->children[near == FRONT ? BACK : FRONT];
    begin = far_begin;
  }
  return false;
}

// Whether anything blocks the ray. If there is no tree, every patch is tried.
static inline bool is_ray_blocked(const struct space *space, uint32_t patches,
                                  const struct ray *ray) {
  if (space->nodes != NULL)
    return is_blocked(space, space->nodes[0].children[FRONT], ray, 0, 1);
  for (uint32_t i = 0; i < patches; i++) {
    const struct patch *patch = &space->patches[i];
    double height = height_above(patch, ray->start), rise = dot(patch->normal, ray->direction);
    if (i != ray->ends[0] && i != ray->ends[1] && goes_through(ray, patch, height, rise))
      return true;
  }
  return false;
}

#endif
