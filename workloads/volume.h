// SPDX-License-Identifier: Apache-2.0
//
// A volume of voxels like the scan of a head: skin around a skull around a brain, with hollows for
// eyes, nose and mouth. It follows from a formula. Each voxel has an opacity and the brightness
// with which its surface is shaded; a pyramid of bits says which cubes are empty.
#ifndef VOLUME_H
#define VOLUME_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "scramble.h"

enum { VOLUME_LEVELS_MAX = 10, VOLUME_AXES = 3 };

struct volume {
  int size[VOLUME_AXES]; // voxels along x, y, z
  uint8_t *opacity;      // 0 to 255, x fastest
  uint16_t *brightness;  // of the surface at a voxel, 0 to 65535
  int levels;            // of the pyramid; a cell of level l has an edge of 2^l voxels
  // A bit for each cell: whether one of the voxels at or around it is not transparent.
  uint64_t *is_filled[VOLUME_LEVELS_MAX];
  int cells[VOLUME_LEVELS_MAX][VOLUME_AXES];
};

static inline size_t voxel_index(const struct volume *volume, int x, int y, int z) {
  return (size_t)((z * volume->size[1] + y) * volume->size[0] + x);
}

static inline bool cell_is_filled(const struct volume *volume, int level, int x, int y, int z) {
  const int *cells = volume->cells[level];
  unsigned index = (unsigned)((z * cells[1] + y) * cells[0] + x);
  return volume->is_filled[level][index / 64] >> index % 64 & 1;
}

// The head is made of ellipsoids in the cube from -1 to 1: x to the right, y to the front, z up.
enum head_part { SKIN, SKULL, BRAIN, LEFT_EYE, RIGHT_EYE, NOSE, MOUTH, NECK, HEAD_PARTS };

static const struct ellipsoid {
  double centre[VOLUME_AXES], radii[VOLUME_AXES];
} head_parts[HEAD_PARTS] = {
    [SKIN] = {{0, 0, 0.08}, {0.68, 0.86, 0.88}},
    [SKULL] = {{0, 0, 0.08}, {0.64, 0.82, 0.84}},
    [BRAIN] = {{0, 0, 0.08}, {0.55, 0.72, 0.72}},
    [LEFT_EYE] = {{-0.25, 0.66, 0.05}, {0.15, 0.22, 0.13}},
    [RIGHT_EYE] = {{0.25, 0.66, 0.05}, {0.15, 0.22, 0.13}},
    [NOSE] = {{0, 0.88, -0.13}, {0.11, 0.20, 0.20}},
    [MOUTH] = {{0, 0.62, -0.47}, {0.24, 0.20, 0.08}},
    [NECK] = {{0, -0.12, -0.85}, {0.36, 0.42, 0.45}},
};
static const double brain_waves[VOLUME_AXES] = {14, 11, 13};

// What the voxels with one coordinate in common have of the formula in common.
struct slice {
  double squares[HEAD_PARTS]; // of the distance from a part's centre, in radii
  double wave;                // of the brain's density
};

static inline void *volume_memory(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) {
    perror("no memory for the volume");
    exit(EXIT_FAILURE);
  }
  return memory;
}

static inline struct slice *find_slices(const struct volume *volume, size_t axis) {
  int size = volume->size[axis];
  struct slice *slices = volume_memory((size_t)size, sizeof *slices);
  for (int i = 0; i < size; i++) {
    double place = 2 * (i + 0.5) / size - 1;
    for (size_t part = 0; part < HEAD_PARTS; part++) {
      const struct ellipsoid *ellipsoid = &head_parts[part];
      double distance = (place - ellipsoid->centre[axis]) / ellipsoid->radii[axis];
      slices[i].squares[part] = distance * distance;
    }
    slices[i].wave = sin(brain_waves[axis] * place);
  }
  return slices;
}

// A voxel by its slices along the three axes.
struct voxel {
  const struct slice *x, *y, *z;
};

static inline bool is_in(struct voxel voxel, enum head_part part) {
  return voxel.x->squares[part] + voxel.y->squares[part] + voxel.z->squares[part] < 1;
}

// From 0 to 1.
static inline double head_density(struct voxel voxel) {
  if (is_in(voxel, LEFT_EYE) || is_in(voxel, RIGHT_EYE) || is_in(voxel, MOUTH))
    return 0.05;
  if (!is_in(voxel, SKIN) && !is_in(voxel, NOSE) && !is_in(voxel, NECK))
    return 0;
  if (is_in(voxel, BRAIN))
    return 0.30 + 0.08 * voxel.x->wave * voxel.y->wave * voxel.z->wave;
  return is_in(voxel, SKULL) ? 0.85 : 0.22;
}

static inline double limited(double part) { return part < 0 ? 0 : part > 1 ? 1 : part; }

static inline void find_densities(const struct volume *volume, float *density) {
  struct slice *slices[VOLUME_AXES];
  for (size_t axis = 0; axis < VOLUME_AXES; axis++)
    slices[axis] = find_slices(volume, axis);
  const int *size = volume->size;
  size_t index = 0;
  for (int z = 0; z < size[2]; z++)
    for (int y = 0; y < size[1]; y++)
      for (int x = 0; x < size[0]; x++, index++) {
        double own = head_density((struct voxel){&slices[0][x], &slices[1][y], &slices[2][z]});
        if (own == 0)
          continue;
        double noise = (int32_t)(scramble(index) >> 32) * 0x1p-31;
        density[index] = (float)limited(own + 0.02 * noise);
      }
  for (size_t axis = 0; axis < VOLUME_AXES; axis++)
    free(slices[axis]);
}

// What is less dense is transparent.
static const double density_min = 0.12;

// Soft tissue is a veil, bone is nearly solid.
static inline double opacity_of_density(double density) {
  return density < 0.5 ? 0.03 + 0.10 * (density - density_min) : 0.12 + 1.7 * (density - 0.5);
}

// The brightness of a voxel follows from the gradient of the density, lit from the front, above and
// the left.
static inline uint16_t shade(const struct volume *volume, const float *density, const int at[],
                             size_t index) {
  const int *size = volume->size;
  const size_t step[] = {1, (size_t)size[0], (size_t)(size[0] * size[1])};
  double gradient[VOLUME_AXES], length = 1e-6;
  for (size_t axis = 0; axis < VOLUME_AXES; axis++) {
    size_t low = at[axis] > 0 ? index - step[axis] : index;
    size_t high = at[axis] + 1 < size[axis] ? index + step[axis] : index;
    gradient[axis] = (double)density[low] - (double)density[high]; // points outwards
    length += gradient[axis] * gradient[axis];
  }
  double facing = (-0.5 * gradient[0] + 0.7 * gradient[1] + 0.5 * gradient[2]) / sqrt(length);
  return (uint16_t)(65535 * (0.3 + 0.7 * limited(facing)));
}

// What is transparent has no brightness.
static inline void shade_voxels(struct volume *volume, const float *density) {
  const int *size = volume->size;
  size_t index = 0;
  for (int z = 0; z < size[2]; z++)
    for (int y = 0; y < size[1]; y++)
      for (int x = 0; x < size[0]; x++, index++) {
        if (density[index] < density_min)
          continue;
        volume->opacity[index] = (uint8_t)(255 * opacity_of_density(density[index]) + 0.5);
        volume->brightness[index] = shade(volume, density, (const int[]){x, y, z}, index);
      }
}

static inline void fill_cell(struct volume *volume, int level, size_t index) {
  volume->is_filled[level][index / 64] |= UINT64_C(1) << index % 64;
}

// The lowest level looks at the eight voxels between which a sample is interpolated.
static inline void fill_lowest_level(struct volume *volume) {
  const int *size = volume->size;
  size_t index = 0;
  for (int z = 0; z < size[2]; z++)
    for (int y = 0; y < size[1]; y++) {
      int next_y = y + 1 < size[1] ? y + 1 : y, next_z = z + 1 < size[2] ? z + 1 : z;
      const uint8_t *rows[] = {&volume->opacity[voxel_index(volume, 0, y, z)],
                               &volume->opacity[voxel_index(volume, 0, next_y, z)],
                               &volume->opacity[voxel_index(volume, 0, y, next_z)],
                               &volume->opacity[voxel_index(volume, 0, next_y, next_z)]};
      int behind = 0; // of the four voxels at x + 1
      for (int x = size[0] - 1; x >= 0; x--) {
        int own = rows[0][x] | rows[1][x] | rows[2][x] | rows[3][x];
        if ((own | behind) != 0)
          fill_cell(volume, 0, index + (size_t)x);
        behind = own;
      }
      index += (size_t)size[0];
    }
}

static inline bool has_filled_child(const struct volume *volume, int level, int x, int y, int z) {
  const int *cells = volume->cells[level - 1];
  for (int child = 0; child < 8; child++) {
    int cx = 2 * x + (child & 1), cy = 2 * y + (child >> 1 & 1), cz = 2 * z + (child >> 2);
    if (cx < cells[0] && cy < cells[1] && cz < cells[2] &&
        cell_is_filled(volume, level - 1, cx, cy, cz))
      return true;
  }
  return false;
}

static inline void fill_level(struct volume *volume, int level) {
  const int *cells = volume->cells[level];
  size_t index = 0;
  for (int z = 0; z < cells[2]; z++)
    for (int y = 0; y < cells[1]; y++)
      for (int x = 0; x < cells[0]; x++, index++)
        if (has_filled_child(volume, level, x, y, z))
          fill_cell(volume, level, index);
}

static inline void build_pyramid(struct volume *volume) {
  bool is_top = false;
  for (int level = 0; level < VOLUME_LEVELS_MAX && !is_top; level++) {
    int *cells = volume->cells[level];
    for (size_t axis = 0; axis < VOLUME_AXES; axis++)
      cells[axis] = level == 0 ? volume->size[axis] : (volume->cells[level - 1][axis] + 1) / 2;
    size_t words = (size_t)(cells[0] * cells[1] * cells[2]) / 64 + 1;
    volume->is_filled[level] = volume_memory(words, sizeof(uint64_t));
    volume->levels = level + 1;
    is_top = cells[0] * cells[1] * cells[2] == 1;
    if (level == 0)
      fill_lowest_level(volume);
    else
      fill_level(volume, level);
  }
}

// A head of `edge` x `edge` voxels in 113/128 of as many layers. Ends the program without memory.
static inline struct volume volume_of_head(int edge) {
  struct volume volume = {.size = {edge, edge, (113 * edge + 127) / 128}};
  size_t voxels = (size_t)(edge * edge * volume.size[2]);
  volume.opacity = volume_memory(voxels, sizeof *volume.opacity);
  volume.brightness = volume_memory(voxels, sizeof *volume.brightness);
  float *density = volume_memory(voxels, sizeof *density);
  find_densities(&volume, density);
  shade_voxels(&volume, density);
  free(density);
  build_pyramid(&volume);
  return volume;
}

#endif
