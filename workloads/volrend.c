// SPDX-License-Identifier: Apache-2.0
//
// Ray casting of a volume like a head, turned a little from frame to frame, which goes on where it
// stopped after a crash.
//
// One parallel ray a pixel walks through the volume in steps of a voxel, front to back: a pyramid
// of bits lets it leap over empty cubes, the opacity and brightness of a sample are interpolated
// between eight voxels, and it ends early when what lies behind can hardly be seen. Threads take
// blocks of 4 x 4 pixels with a fetch-and-add; a barrier separates the frames.
//
// No pixel is 0 when it has been computed, so the pictures are their own loop index: a block with a
// 0 in it is computed again. At the level `barrier` the lines that a thread has written in a frame
// are persisted at its end, at `coarse` those of a block, at `fine` each pixel that shows something
// and then the rest of its block.
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint.h"
#include "line_set.h"
#include "options.h"
#include "persist.h"
#include "pool.h"
#include "scramble.h"
#include "team.h"
#include "volume.h"

static const char usage[] = "volrend [-s VOXELS] [-i PIXELS] [-f FRAMES] [-p THREADS] "
                            "[--persist-level barrier|coarse|fine] "
                            "[--flush none|clflush|clflushopt|clwb] [--pool FILE] [--crash-at N]";

static const uint64_t magic = UINT64_C(0x312d4c4f565f5046); // "FP_VOL-1"

enum {
  BLOCK = 4, // edge of a block in pixels
  VOXELS_MAX = 512,
  PIXELS_MAX = 4096,
  FRAMES_MAX = 1000,
  BACKGROUND = 1, // a pixel whose ray meets nothing
  DEGREES_PER_FRAME = 3,
  BLOCKS_IN_TURN = 2 // in a crowded team; each turn costs a system call
};

// A ray ends when less than this part of the light comes through.
static const float transparency_min = 0.05f;

struct volrend {
  struct volume volume;
  size_t pixels; // edge of a picture
  uint64_t frames;
  unsigned threads;
  enum flush flush;
  enum persist_level level;
  uint8_t *pictures;
  struct line_set *written;   // of each thread, since its last flush
  _Atomic size_t *next_block; // of each frame
  pthread_barrier_t barrier;
};

// Where rays of a frame begin and go, in voxels.
struct view {
  float corner[VOLUME_AXES], right[VOLUME_AXES], down[VOLUME_AXES], forward[VOLUME_AXES];
  float steps_per_voxel[VOLUME_AXES];
  int steps;
};

static uint8_t *pixel_at(const struct volrend *volrend, uint64_t frame, size_t row, size_t column) {
  return volrend->pictures + (frame * volrend->pixels + row) * volrend->pixels + column;
}

// Seen from the front, turned about the vertical axis; the picture is as wide as the volume is from
// corner to corner, so that no turn takes a part of it out of sight.
static struct view view_of_frame(const struct volrend *volrend, uint64_t frame) {
  const int *size = volrend->volume.size;
  float angle = (float)(frame * DEGREES_PER_FRAME) * (float)M_PI / 180;
  float width = (float)M_SQRT2 * (float)size[0], depth = 1.5f * (float)size[0];
  float step = width / (float)volrend->pixels;
  struct view view = {
      .right = {-step * cosf(angle), step * sinf(angle), 0},
      .down = {0, 0, -step},
      .forward = {-sinf(angle), -cosf(angle), 0},
      .steps = (int)depth,
  };
  for (size_t axis = 0; axis < VOLUME_AXES; axis++) {
    bool moves = fabsf(view.forward[axis]) > 1e-6f;
    view.steps_per_voxel[axis] = moves ? 1 / view.forward[axis] : 0;
    view.corner[axis] = (float)(size[axis] - 1) / 2 - view.forward[axis] * depth / 2 -
                        (view.right[axis] + view.down[axis]) * (float)(volrend->pixels - 1) / 2;
  }
  return view;
}

struct ray {
  float start[VOLUME_AXES], step[VOLUME_AXES];
  float steps_per_voxel[VOLUME_AXES]; // 1 / step, or 0 along an axis on which it does not move
};

static struct ray ray_of_pixel(const struct view *view, size_t row, size_t column) {
  struct ray ray;
  for (size_t axis = 0; axis < VOLUME_AXES; axis++) {
    ray.start[axis] =
        view->corner[axis] + view->right[axis] * (float)column + view->down[axis] * (float)row;
    ray.step[axis] = view->forward[axis];
    ray.steps_per_voxel[axis] = view->steps_per_voxel[axis];
  }
  return ray;
}

// What a ray has gathered.
struct light {
  float brightness, transparency;
};

// Adds the sample at a point inside the volume, between its eight voxels.
static void add_sample(const struct volume *volume, const float point[VOLUME_AXES],
                       struct light *light) {
  int x = (int)point[0], y = (int)point[1], z = (int)point[2];
  float fx = point[0] - (float)x, fy = point[1] - (float)y, fz = point[2] - (float)z;
  size_t row = (size_t)volume->size[0], layer = row * (size_t)volume->size[1];
  size_t index = voxel_index(volume, x, y, z);
  const size_t offsets[8] = {0, 1, row, row + 1, layer, layer + 1, layer + row, layer + row + 1};
  float opacity = 0, brightness = 0;
#pragma GCC unroll 8
  for (size_t corner = 0; corner < 8; corner++) {
    float weight =
        (corner & 1 ? fx : 1 - fx) * (corner & 2 ? fy : 1 - fy) * (corner & 4 ? fz : 1 - fz);
    float own = weight * (float)volume->opacity[index + offsets[corner]];
    opacity += own;
    brightness += own * (float)volume->brightness[index + offsets[corner]];
  }
  light->brightness += light->transparency * brightness * (1 / (255 * 65535.0f));
  light->transparency *= 1 - opacity * (1 / 255.0f);
}

// Whether all eight voxels around a point exist.
static bool is_inside(const struct volume *volume, const float point[VOLUME_AXES]) {
  for (size_t axis = 0; axis < VOLUME_AXES; axis++)
    if (!(point[axis] >= 0 && point[axis] < (float)(volume->size[axis] - 1)))
      return false;
  return true;
}

static void point_on_ray(const struct ray *ray, int step, float point[VOLUME_AXES]) {
  for (size_t axis = 0; axis < VOLUME_AXES; axis++)
    point[axis] = ray->start[axis] + ray->step[axis] * (float)step;
}

// How many steps lead out of the largest empty cube around a point; 0 if it lies in none.
static int steps_of_leap(const struct volume *volume, const struct ray *ray,
                         const float point[VOLUME_AXES]) {
  const int at[] = {(int)point[0], (int)point[1], (int)point[2]};
  int level = 0;
  while (level < volume->levels &&
         !cell_is_filled(volume, level, at[0] >> level, at[1] >> level, at[2] >> level))
    level++;
  if (level == 0)
    return 0;
  float edge = (float)(1 << (level - 1)), steps = 1e9f;
  for (size_t axis = 0; axis < VOLUME_AXES; axis++) {
    float low = (float)(at[axis] >> (level - 1) << (level - 1));
    float side = ray->step[axis] > 0 ? low + edge : low;
    float way = (side - point[axis]) * ray->steps_per_voxel[axis];
    if (ray->steps_per_voxel[axis] != 0 && way < steps)
      steps = way;
  }
  return steps > 0 ? (int)steps + 1 : 1;
}

// The steps between which a ray is inside the volume: from the first, before the second.
static void clip(const struct volume *volume, const struct ray *ray, int steps, int range[2]) {
  float near = 0, far = (float)steps;
  for (size_t axis = 0; axis < VOLUME_AXES; axis++) {
    float edge = (float)(volume->size[axis] - 1);
    if (ray->steps_per_voxel[axis] == 0) {
      if (ray->start[axis] < 0 || ray->start[axis] >= edge)
        far = 0;
      continue;
    }
    float one = -ray->start[axis] * ray->steps_per_voxel[axis];
    float other = (edge - ray->start[axis]) * ray->steps_per_voxel[axis];
    near = fmaxf(near, fminf(one, other));
    far = fminf(far, fmaxf(one, other));
  }
  // One step of rounding either way; `is_inside` decides about those.
  range[0] = near < 1 ? 0 : (int)near - 1;
  range[1] = far < 0 ? 0 : (int)far + 2;
}

static uint8_t pixel_of_light(struct light light) {
  float grey = (float)BACKGROUND + light.brightness * (255 - BACKGROUND) + 0.5f;
  return (uint8_t)fminf(grey, 255);
}

static uint8_t cast_ray(const struct volume *volume, const struct ray *ray, int steps) {
  struct light light = {0, 1};
  int range[2];
  clip(volume, ray, steps, range);
  for (int step = range[0]; step < range[1] && light.transparency > transparency_min;) {
    float point[VOLUME_AXES];
    point_on_ray(ray, step, point);
    if (!is_inside(volume, point)) {
      step++;
      continue;
    }
    int leap = steps_of_leap(volume, ray, point);
    if (leap == 0)
      add_sample(volume, point, &light);
    step += leap == 0 ? 1 : leap;
  }
  return pixel_of_light(light);
}

static bool block_is_finished(const struct volrend *volrend, uint64_t frame, size_t row,
                              size_t column) {
  for (size_t i = row; i < row + BLOCK; i++)
    for (size_t j = column; j < column + BLOCK; j++)
      if (*pixel_at(volrend, frame, i, j) == 0)
        return false;
  return true;
}

static void persist_written(struct volrend *volrend, unsigned thread) {
  line_set_flush(&volrend->written[thread], volrend->flush);
  fence(volrend->flush);
  crash_point();
}

static void render_block(struct volrend *volrend, unsigned thread, const struct view *view,
                         uint64_t frame, size_t row, size_t column) {
  for (size_t i = row; i < row + BLOCK; i++)
    for (size_t j = column; j < column + BLOCK; j++) {
      struct ray ray = ray_of_pixel(view, i, j);
      uint8_t *pixel = pixel_at(volrend, frame, i, j);
      *pixel = cast_ray(&volrend->volume, &ray, view->steps);
      if (volrend->level == LEVEL_FINE && *pixel != BACKGROUND) {
        persist(volrend->flush, pixel, sizeof *pixel);
        crash_point();
      } else {
        line_set_add(&volrend->written[thread], pixel, sizeof *pixel);
      }
    }
  if (volrend->level != LEVEL_BARRIER)
    persist_written(volrend, thread);
}

static void render(unsigned thread, void *problem) {
  struct volrend *volrend = problem;
  size_t blocks = volrend->pixels / BLOCK;
  for (uint64_t frame = 0; frame < volrend->frames; frame++) {
    struct view view = view_of_frame(volrend, frame);
    size_t block;
    while ((block = atomic_fetch_add(&volrend->next_block[frame], 1)) < blocks * blocks) {
      size_t row = block / blocks * BLOCK, column = block % blocks * BLOCK;
      if (block % BLOCKS_IN_TURN == 0)
        take_turns();
      if (!block_is_finished(volrend, frame, row, column))
        render_block(volrend, thread, &view, frame, row, column);
    }
    if (volrend->level == LEVEL_BARRIER)
      persist_written(volrend, thread);
    pthread_barrier_wait(&volrend->barrier);
  }
}

static size_t picture_bytes(const struct volrend *volrend) {
  return volrend->frames * volrend->pixels * volrend->pixels;
}

// Opens or formats the pool; returns how many pixels an earlier run has left.
static uint64_t open_pool(struct volrend *volrend, const char *path) {
  size_t bytes = picture_bytes(volrend);
  struct pool_header *header = pool_open(path, sizeof *header + bytes, false);
  volrend->pictures = (uint8_t *)(header + 1);
  const uint64_t parameters[POOL_PARAMETERS] = {(uint64_t)volrend->volume.size[0], volrend->pixels,
                                                volrend->frames};
  if (!pool_is_formatted(header, path, magic, parameters)) {
    memset(volrend->pictures, 0, bytes);
    persist(volrend->flush, volrend->pictures, bytes);
    pool_finish_format(header, magic, parameters, volrend->flush);
  }
  uint64_t resumed = 0;
  for (size_t pixel = 0; pixel < bytes; pixel++)
    resumed += volrend->pictures[pixel] != 0;
  return resumed;
}

// The answer

// Without the pyramid: every step is taken, from the beginning to the end.
static uint8_t cast_ray_plainly(const struct volume *volume, const struct ray *ray, int steps) {
  struct light light = {0, 1};
  for (int step = 0; step < steps && light.transparency > transparency_min; step++) {
    float point[VOLUME_AXES];
    point_on_ray(ray, step, point);
    if (is_inside(volume, point))
      add_sample(volume, point, &light);
  }
  return pixel_of_light(light);
}

// How many pixels are wrong: about `SAMPLES` are computed plainly, the others must be there.
static uint64_t wrong_pixels(const struct volrend *volrend) {
  enum { SAMPLES = 4096 };
  size_t pixels = volrend->pixels * volrend->pixels;
  size_t distance = picture_bytes(volrend) / SAMPLES + 1;
  uint64_t wrong = 0;
  for (size_t index = 0; index < picture_bytes(volrend); index++)
    wrong += volrend->pictures[index] == 0;
  for (uint64_t frame = 0; frame < volrend->frames; frame++) {
    struct view view = view_of_frame(volrend, frame);
    for (size_t index = frame % distance; index < pixels; index += distance) {
      size_t row = index / volrend->pixels, column = index % volrend->pixels;
      struct ray ray = ray_of_pixel(&view, row, column);
      uint8_t right = cast_ray_plainly(&volrend->volume, &ray, view.steps);
      wrong += *pixel_at(volrend, frame, row, column) != right;
    }
  }
  return wrong;
}

static uint64_t checksum(const struct volrend *volrend) {
  uint64_t sum = 0;
  for (size_t pixel = 0; pixel < picture_bytes(volrend); pixel++)
    sum = scramble(sum ^ volrend->pictures[pixel]);
  return sum;
}

// Pixels that show something, of all.
static double filled_part(const struct volrend *volrend) {
  size_t filled = 0, bytes = picture_bytes(volrend);
  for (size_t pixel = 0; pixel < bytes; pixel++)
    filled += volrend->pictures[pixel] > BACKGROUND;
  return (double)filled / (double)bytes;
}

struct arguments {
  size_t voxels, pixels;
  uint64_t frames;
  unsigned threads;
  enum flush flush;
  enum persist_level level;
  const char *pool;
};

static struct arguments parse_arguments(int count, char **values) {
  static const struct option options[] = {{"flush", required_argument, NULL, 'F'},
                                          {"persist-level", required_argument, NULL, 'l'},
                                          {"pool", required_argument, NULL, 'P'},
                                          {"crash-at", required_argument, NULL, 'c'},
                                          {0}};
  struct arguments arguments = {.voxels = 128,
                                .pixels = 144,
                                .frames = 12,
                                .threads = 1,
                                .flush = FLUSH_CLFLUSH,
                                .level = LEVEL_FINE};
  for (int option; (option = getopt_long(count, values, "s:i:f:p:", options, NULL)) != -1;)
    switch (option) {
    case 's':
      arguments.voxels = number_option(usage, "-s", optarg, 8, VOXELS_MAX);
      break;
    case 'i':
      arguments.pixels = number_option(usage, "-i", optarg, BLOCK, PIXELS_MAX);
      break;
    case 'f':
      arguments.frames = number_option(usage, "-f", optarg, 1, FRAMES_MAX);
      break;
    case 'p':
      arguments.threads = (unsigned)number_option(usage, "-p", optarg, 1, TEAM_THREADS_MAX);
      break;
    case 'F':
      arguments.flush = flush_option(usage, optarg);
      break;
    case 'l':
      arguments.level = persist_level_option(usage, optarg);
      break;
    case 'P':
      arguments.pool = optarg;
      break;
    case 'c':
      crash_at = number_option(usage, "--crash-at", optarg, 1, UINT64_MAX);
      break;
    default:
      usage_error(usage, "wrong option");
    }
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  if (arguments.pixels % BLOCK != 0)
    usage_error(usage, "-i %zu is no multiple of %d, the edge of a block", arguments.pixels, BLOCK);
  return arguments;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  struct volrend volrend = {.volume = volume_of_head((int)arguments.voxels),
                            .pixels = arguments.pixels,
                            .frames = arguments.frames,
                            .threads = arguments.threads,
                            .flush = arguments.flush,
                            .level = arguments.level};
  uint64_t resumed = open_pool(&volrend, arguments.pool);
  volrend.next_block = volume_memory(volrend.frames, sizeof *volrend.next_block);
  volrend.written = volume_memory(volrend.threads, sizeof *volrend.written);
  for (unsigned thread = 0; thread < volrend.threads; thread++)
    volrend.written[thread] = line_set_new(volrend.pictures, picture_bytes(&volrend));
  pthread_barrier_init(&volrend.barrier, NULL, volrend.threads);

  team_run(volrend.threads, render, &volrend);

  uint64_t wrong = wrong_pixels(&volrend);
  printf("volrend: voxels=%d pixels=%zu frames=%" PRIu64
         " threads=%u level=%s flush=%s pixels_resumed=%" PRIu64 " filled=%.2f checksum=%016" PRIx64
         " %s\n",
         volrend.volume.size[0], volrend.pixels, volrend.frames, volrend.threads,
         persist_level_names[volrend.level], flush_names[volrend.flush], resumed,
         filled_part(&volrend), checksum(&volrend), wrong == 0 ? "ok" : "WRONG");
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
