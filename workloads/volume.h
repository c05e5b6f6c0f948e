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

// How far inside an ellipsoid a point is: 1 at its centre, 0 on its surface, below 0 outside.
static inline double inside(const double point[VOLUME_AXES], const double centre[VOLUME_AXES],
                            const double radii[VOLUME_AXES]) {
  double sum = 0;
  for (size_t axis = 0; axis < VOLUME_AXES; axis++) {
    double distance = (point[axis] - centre[axis]) / radii[axis];
    sum += distance * distance;
  }
  return 1 - sqrt(sum);
}

// Density from 0 to 1 of a point of the cube from -1 to 1: x to the right, y to the front, z up.
static inline double head_density(const double point[VOLUME_AXES]) {
  static const double middle[] = {0, 0, 0.08}, skin[] = {0.68, 0.86, 0.88};
  static const double skull[] = {0.64, 0.82, 0.84}, brain[] = {0.55, 0.72, 0.72};
  static const double eye[2][3] = {{-0.25, 0.66, 0.05}, {0.25, 0.66, 0.05}};
  static const double socket[] = {0.15, 0.22, 0.13};
  static const double nose[] = {0, 0.88, -0.13}, nose_size[] = {0.11, 0.20, 0.20};
  static const double mouth[] = {0, 0.62, -0.47}, mouth_size[] = {0.24, 0.20, 0.08};
  static const double neck[] = {0, -0.12, -0.85}, neck_size[] = {0.36, 0.42, 0.45};
  if (inside(point, eye[0], socket) > 0 || inside(point, eye[1], socket) > 0 ||
      inside(point, mouth, mouth_size) > 0)
    return 0.05;
  double depth = inside(point, middle, skin);
  depth = fmax(depth, fmax(inside(point, nose, nose_size), inside(point, neck, neck_size)));
  if (depth <= 0)
    return 0;
  if (inside(point, middle, brain) > 0)
    return 0.30 + 0.08 * sin(14 * point[0]) * sin(11 * point[1]) * sin(13 * point[2]);
  return inside(point, middle, skull) > 0 ? 0.85 : 0.22;
}

static inline double voxel_density(const struct volume *volume, int x, int y, int z) {
  const int at[] = {x, y, z};
  double point[VOLUME_AXES];
  for (size_t axis = 0; axis < VOLUME_AXES; axis++)
    point[axis] = 2 * (at[axis] + 0.5) / volume->size[axis] - 1;
  double noise = (int32_t)(scramble(voxel_index(volume, x, y, z)) >> 32) * 0x1p-31;
  double density = head_density(point);
  return density > 0 ? fmin(1, fmax(0, density + 0.02 * noise)) : 0;
}

// Soft tissue is a veil, bone is nearly solid.
static inline double opacity_of_density(double density) {
  if (density < 0.12)
    return 0;
  return density < 0.5 ? 0.03 + 0.10 * (density - 0.12) : 0.12 + 1.7 * (density - 0.5);
}

static inline void *volume_memory(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) {
    perror("no memory for the volume");
    exit(EXIT_FAILURE);
  }
  return memory;
}

// Shades every voxel by the gradient of the density, lit from the front, above and the left.
static inline void shade_voxels(struct volume *volume, const float *density) {
  const int *size = volume->size;
  for (int z = 0; z < size[2]; z++)
    for (int y = 0; y < size[1]; y++)
      for (int x = 0; x < size[0]; x++) {
        size_t index = voxel_index(volume, x, y, z);
        const int at[] = {x, y, z};
        const size_t step[] = {1, (size_t)size[0], (size_t)(size[0] * size[1])};
        double gradient[VOLUME_AXES], length = 1e-6;
        for (size_t axis = 0; axis < VOLUME_AXES; axis++) {
          size_t low = at[axis] > 0 ? index - step[axis] : index;
          size_t high = at[axis] + 1 < size[axis] ? index + step[axis] : index;
          gradient[axis] = (double)density[low] - (double)density[high]; // points outwards
          length += gradient[axis] * gradient[axis];
        }
        double facing = (-0.5 * gradient[0] + 0.7 * gradient[1] + 0.5 * gradient[2]) / sqrt(length);
        volume->brightness[index] = (uint16_t)(65535 * (0.3 + 0.7 * fmax(0, fmin(1, facing))));
        volume->opacity[index] = (uint8_t)(255 * opacity_of_density(density[index]) + 0.5);
      }
}

// The lowest level looks at the eight voxels between which a sample is interpolated.
static inline bool has_opacity(const struct volume *volume, int x, int y, int z) {
  for (int corner = 0; corner < 8; corner++) {
    int cx = x + (corner & 1), cy = y + (corner >> 1 & 1), cz = z + (corner >> 2);
    if (cx < volume->size[0] && cy < volume->size[1] && cz < volume->size[2] &&
        volume->opacity[voxel_index(volume, cx, cy, cz)] > 0)
      return true;
  }
  return false;
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

static inline void build_pyramid(struct volume *volume) {
  bool is_top = false;
  for (int level = 0; level < VOLUME_LEVELS_MAX && !is_top; level++) {
    int *cells = volume->cells[level];
    for (size_t axis = 0; axis < VOLUME_AXES; axis++)
      cells[axis] = level == 0 ? volume->size[axis] : (volume->cells[level - 1][axis] + 1) / 2;
    uint64_t *bits = volume_memory((size_t)(cells[0] * cells[1] * cells[2]) / 64 + 1, sizeof *bits);
    volume->is_filled[level] = bits;
    volume->levels = level + 1;
    is_top = cells[0] * cells[1] * cells[2] == 1;
    size_t index = 0;
    for (int z = 0; z < cells[2]; z++)
      for (int y = 0; y < cells[1]; y++)
        for (int x = 0; x < cells[0]; x++, index++)
          if (level == 0 ? has_opacity(volume, x, y, z) : has_filled_child(volume, level, x, y, z))
            bits[index / 64] |= UINT64_C(1) << index % 64;
  }
}

// A head of `edge` x `edge` voxels in 113/128 of as many layers. Ends the program without memory.
static inline struct volume volume_of_head(int edge) {
  struct volume volume = {.size = {edge, edge, (113 * edge + 127) / 128}};
  size_t voxels = (size_t)(edge * edge * volume.size[2]), index = 0;
  volume.opacity = volume_memory(voxels, sizeof *volume.opacity);
  volume.brightness = volume_memory(voxels, sizeof *volume.brightness);
  float *density = volume_memory(voxels, sizeof *density);
  for (int z = 0; z < volume.size[2]; z++)
    for (int y = 0; y < edge; y++)
      for (int x = 0; x < edge; x++)
        density[index++] = (float)voxel_density(&volume, x, y, z);
  shade_voxels(&volume, density);
  free(density);
  build_pyramid(&volume);
  return volume;
}

#endif
