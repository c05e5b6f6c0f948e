// SPDX-License-Identifier: Apache-2.0
//
// Ray tracing of a teapot on a table, which goes on where it stopped after a crash.
//
// One primary ray a pixel finds the nearest triangle in a hierarchical grid; from there go a shadow
// ray to the lamp and, from the china, a reflected ray, up to a depth. The picture is cut into jobs
// of 4 x 4 pixels. Each thread has a queue with a stripe of them, and when it is empty takes from
// the others.
//
// A pixel is its colour in three floats, none of which is 0 once it has been computed. So the
// picture says by itself what is left to do after a crash, also of a pixel of which only a part was
// durable. A region is all that a thread computes (`barrier`), a job (`coarse`) or a pixel
// (`fine`); the loop indices count the pixels of finished regions, so a picture with fewer is
// damaged.
//
// The published input is not here. 192 x 192 pixels is the picture whose lines, 12 bytes a pixel,
// come near the published ones at all three levels; the triangles give about the published heap.
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint.h"
#include "line_set.h"
#include "options.h"
#include "persist.h"
#include "pool.h"
#include "ray_check.h"
#include "ray_grid.h"
#include "scramble.h"
#include "team.h"
#include "teapot.h"

static const char usage[] = "raytrace [-i PIXELS] [-t TESSELLATION] [-p THREADS] "
                            "[--persist-level barrier|coarse|fine] "
                            "[--flush none|clflush|clflushopt|clwb] [--pool FILE] [--crash-at N]";

static const uint64_t magic = UINT64_C(0x312d5941525f5046); // "FP_RAY-1"

enum {
  JOB = 4, // edge of a job in pixels
  PIXELS_MAX = 8192,
  TESSELLATION_MAX = 2000,
  DEPTH_MAX = 3, // rays in a row, the primary one counted
  LAMPS = 1
};

static const double reflectivity = 0.35;
static const struct vector lamps[LAMPS] = {{4, -7, 8}};
static const double lamp_strength[LAMPS] = {0.85};
static const struct vector eye = {3.2, -7.5, 4.2}, looked_at = {0.2, 0, 0.9};

// Red, green and blue, 1 being full; 0 before it is computed.
struct pixel {
  float parts[3];
};

static bool is_computed(const struct pixel *pixel) {
  return pixel->parts[0] != 0 && pixel->parts[1] != 0 && pixel->parts[2] != 0;
}

// Jobs of a stripe of the picture that are still to be done; volatile.
struct job_queue {
  _Alignas(LINE_BYTES) pthread_mutex_t lock;
  uint32_t next, end;
};

// What a thread has computed of its region, if that is more than a pixel.
struct region {
  struct line_set written;
  uint64_t pixels;
};

struct raytrace {
  struct scene scene;
  struct grid *grid;
  size_t pixels; // edge of the picture
  unsigned threads;
  enum flush flush;
  enum persist_level level;
  struct loop_index *indices; // of each thread: pixels of finished regions, in all runs
  struct pixel *picture;
  struct job_queue *queues;
  struct region *regions; // the one that each thread is in
  struct tracer *tracers; // of each thread
};

// Red, green and blue, 1 being full.
typedef struct vector colour;

static struct vector hit_normal(const struct triangle *triangle, const struct hit *hit) {
  const double *weights = hit->weights;
  struct vector sum = vector_scaled(triangle->normals[0], 1 - weights[0] - weights[1]);
  sum = vector_sum(sum, vector_scaled(triangle->normals[1], weights[0]));
  return vector_unit(vector_sum(sum, vector_scaled(triangle->normals[2], weights[1])));
}

static colour own_colour(enum material material, struct vector point) {
  if (material == CHINA)
    return (colour){0.85, 0.80, 0.62};
  bool is_dark = ((long)floor(point.x) + (long)floor(point.y)) & 1;
  return is_dark ? (colour){0.25, 0.18, 0.15} : (colour){0.75, 0.72, 0.68};
}

// Finds the nearest triangle, with the grid or, for the check, without it.
typedef struct hit (*hit_finder)(struct tracer *tracer, const struct ray *ray, double distance);

// Light that comes from one lamp, diffuse and glossy.
static double light_from(struct tracer *tracer, hit_finder find, size_t lamp, struct vector point,
                         struct vector normal, struct vector reflected) {
  struct vector way = vector_difference(lamps[lamp], point);
  double distance = sqrt(vector_dot(way, way));
  struct vector direction = vector_scaled(way, 1 / distance);
  double facing = vector_dot(normal, direction);
  if (facing <= 0)
    return 0;
  struct vector start = vector_sum(point, vector_scaled(normal, 1e-6));
  struct ray shadow = ray_from(start, direction);
  if (find(tracer, &shadow, distance).triangle != no_triangle)
    return 0;
  double gloss = vector_dot(reflected, direction);
  for (int power = 1; power < 32; power *= 2)
    gloss *= gloss;
  return lamp_strength[lamp] * (facing + 0.5 * gloss);
}

static colour cast_ray(struct tracer *tracer, hit_finder find, const struct ray *ray, int depth) {
  struct hit hit = find(tracer, ray, DBL_MAX);
  if (hit.triangle == no_triangle)
    return (colour){0.35, 0.45, 0.60};
  const struct triangle *triangle = &tracer->scene->triangles[hit.triangle];
  struct vector direction = ray->direction_vector;
  struct vector point = vector_sum(ray->start_point, vector_scaled(direction, hit.distance));
  struct vector normal = hit_normal(triangle, &hit);
  if (vector_dot(normal, direction) > 0)
    normal = vector_scaled(normal, -1);
  struct vector reflected =
      vector_difference(direction, vector_scaled(normal, 2 * vector_dot(normal, direction)));
  double light = 0.15;
  for (size_t lamp = 0; lamp < LAMPS; lamp++)
    light += light_from(tracer, find, lamp, point, normal, reflected);
  colour result = vector_scaled(own_colour(triangle->material, point), light);
  if (triangle->material == CHINA && depth < DEPTH_MAX) {
    struct ray next = ray_from(vector_sum(point, vector_scaled(normal, 1e-6)), reflected);
    colour mirrored = cast_ray(tracer, find, &next, depth + 1);
    result =
        vector_sum(vector_scaled(result, 1 - reflectivity), vector_scaled(mirrored, reflectivity));
  }
  return result;
}

// No part of a colour is 0: the light that comes from everywhere is not.
static float part_of(double part) { return (float)fmin(1, fmax(1e-6, part)); }

static struct pixel compute_pixel(const struct raytrace *raytrace, struct tracer *tracer,
                                  hit_finder find, size_t row, size_t column) {
  struct vector forward = vector_unit(vector_difference(looked_at, eye));
  struct vector right = vector_unit(vector_cross(forward, (struct vector){0, 0, 1}));
  struct vector up = vector_cross(right, forward);
  double scale = 0.75 / (double)raytrace->pixels; // of the picture's width at distance 1
  double across = (2 * (double)column + 1 - (double)raytrace->pixels) / 2 * scale;
  double above = ((double)raytrace->pixels - 2 * (double)row - 1) / 2 * scale;
  struct vector direction =
      vector_sum(forward, vector_sum(vector_scaled(right, across), vector_scaled(up, above)));
  struct ray ray = ray_from(eye, vector_unit(direction));
  colour found = cast_ray(tracer, find, &ray, 1);
  return (struct pixel){{part_of(found.x), part_of(found.y), part_of(found.z)}};
}

static struct pixel *pixel_at(const struct raytrace *raytrace, size_t row, size_t column) {
  return &raytrace->picture[row * raytrace->pixels + column];
}

static void job_place(const struct raytrace *raytrace, uint32_t job, size_t *row, size_t *column) {
  size_t jobs_in_row = raytrace->pixels / JOB;
  *row = job / jobs_in_row * JOB;
  *column = job % jobs_in_row * JOB;
}

// Ends the region of a thread at `barrier` and `coarse`.
static void finish(struct raytrace *raytrace, unsigned thread) {
  struct region *region = &raytrace->regions[thread];
  line_set_flush(&region->written, raytrace->flush);
  finish_regions(raytrace->flush, &raytrace->indices[thread], region->pixels);
  region->pixels = 0;
}

static void do_job(struct raytrace *raytrace, unsigned thread, uint32_t job) {
  size_t row, column;
  job_place(raytrace, job, &row, &column);
  struct region *region = &raytrace->regions[thread];
  for (size_t i = row; i < row + JOB; i++)
    for (size_t j = column; j < column + JOB; j++) {
      struct pixel *pixel = pixel_at(raytrace, i, j);
      if (is_computed(pixel))
        continue;
      *pixel = compute_pixel(raytrace, &raytrace->tracers[thread], trace, i, j);
      if (raytrace->level == LEVEL_FINE) {
        flush_range(raytrace->flush, pixel, sizeof *pixel);
        finish_region(raytrace->flush, &raytrace->indices[thread]);
      } else {
        line_set_add(&region->written, pixel, sizeof *pixel);
        region->pixels++;
      }
    }
  if (raytrace->level == LEVEL_COARSE)
    finish(raytrace, thread);
}

// Takes a job from the thread's own queue or else from the next one that has any.
static bool take_job(struct raytrace *raytrace, unsigned thread, uint32_t *job) {
  for (unsigned i = 0; i < raytrace->threads; i++) {
    struct job_queue *queue = &raytrace->queues[(thread + i) % raytrace->threads];
    pthread_mutex_lock(&queue->lock);
    bool has_job = queue->next < queue->end;
    if (has_job)
      *job = queue->next++;
    pthread_mutex_unlock(&queue->lock);
    if (has_job)
      return true;
  }
  return false;
}

static void render(unsigned thread, void *problem) {
  struct raytrace *raytrace = problem;
  for (uint32_t job; take_job(raytrace, thread, &job);)
    do_job(raytrace, thread, job);
  if (raytrace->level == LEVEL_BARRIER)
    finish(raytrace, thread);
}

static bool job_is_finished(const struct raytrace *raytrace, uint32_t job) {
  size_t row, column;
  job_place(raytrace, job, &row, &column);
  for (size_t i = row; i < row + JOB; i++)
    for (size_t j = column; j < column + JOB; j++)
      if (!is_computed(pixel_at(raytrace, i, j)))
        return false;
  return true;
}

static void make_queues(struct raytrace *raytrace) {
  uint32_t jobs = (uint32_t)(raytrace->pixels / JOB * (raytrace->pixels / JOB));
  raytrace->queues = aligned_alloc(LINE_BYTES, raytrace->threads * sizeof *raytrace->queues);
  if (raytrace->queues == NULL) {
    perror("no memory for the queues");
    exit(EXIT_FAILURE);
  }
  for (unsigned thread = 0; thread < raytrace->threads; thread++) {
    struct job_queue *queue = &raytrace->queues[thread];
    pthread_mutex_init(&queue->lock, NULL);
    queue->next = (uint32_t)((uint64_t)jobs * thread / raytrace->threads);
    queue->end = (uint32_t)((uint64_t)jobs * (thread + 1) / raytrace->threads);
    // What an earlier run has finished at the beginning of a stripe need not be taken again.
    while (queue->next < queue->end && job_is_finished(raytrace, queue->next))
      queue->next++;
  }
}

// Opens or formats the pool; returns how many pixels an earlier run has left.
static uint64_t open_pool(struct raytrace *raytrace, const char *path) {
  size_t pixels = raytrace->pixels * raytrace->pixels, bytes = pixels * sizeof(struct pixel);
  size_t index_bytes = raytrace->threads * sizeof(struct loop_index);
  struct pool_header *header = pool_open(path, sizeof *header + index_bytes + bytes, false);
  raytrace->indices = (struct loop_index *)(header + 1);
  raytrace->picture = (struct pixel *)(raytrace->indices + raytrace->threads);
  const uint64_t parameters[POOL_PARAMETERS] = {raytrace->pixels, raytrace->scene.count,
                                                raytrace->threads};
  if (!pool_is_formatted(header, path, magic, parameters)) {
    memset(raytrace->indices, 0, index_bytes + bytes);
    persist(raytrace->flush, raytrace->indices, index_bytes + bytes);
    pool_finish_format(header, magic, parameters, raytrace->flush);
  }
  uint64_t resumed = 0, finished = 0;
  for (size_t pixel = 0; pixel < pixels; pixel++)
    resumed += is_computed(&raytrace->picture[pixel]);
  for (unsigned thread = 0; thread < raytrace->threads; thread++)
    finished += raytrace->indices[thread].regions_finished;
  if (finished > resumed)
    pool_mismatch(path, "damaged: pixels of finished regions are missing");
  return resumed;
}

// The answer

// How many pixels are wrong: some are computed without the grid, the others must be there.
static uint64_t wrong_pixels(const struct raytrace *raytrace) {
  enum { SAMPLES = 256 };
  const struct scene *scene = &raytrace->scene;
  size_t pixels = raytrace->pixels * raytrace->pixels;
  struct tracer tracer = {.scene = scene, .balls = balls_around(scene)};
  uint64_t wrong = 0;
  for (size_t index = 0; index < pixels; index++)
    wrong += !is_computed(&raytrace->picture[index]);
  for (size_t sample = 0; sample < SAMPLES; sample++) {
    size_t index = scramble(sample) % pixels;
    size_t row = index / raytrace->pixels, column = index % raytrace->pixels;
    struct pixel right = compute_pixel(raytrace, &tracer, trace_plainly, row, column);
    wrong += memcmp(&right, pixel_at(raytrace, row, column), sizeof right) != 0;
  }
  free(tracer.balls);
  return wrong;
}

static uint64_t checksum(const struct raytrace *raytrace) {
  uint64_t sum = 0;
  for (size_t index = 0; index < raytrace->pixels * raytrace->pixels; index++) {
    uint32_t bits[3];
    memcpy(bits, &raytrace->picture[index], sizeof bits);
    for (size_t part = 0; part < 3; part++)
      sum = scramble(sum ^ bits[part]);
  }
  return sum;
}

struct arguments {
  size_t pixels, tessellation;
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
  struct arguments arguments = {.pixels = 192,
                                .tessellation = 190,
                                .threads = 1,
                                .flush = FLUSH_CLFLUSH,
                                .level = LEVEL_FINE};
  for (int option; (option = getopt_long(count, values, "i:t:p:", options, NULL)) != -1;)
    switch (option) {
    case 'i':
      arguments.pixels = number_option(usage, "-i", optarg, JOB, PIXELS_MAX);
      break;
    case 't':
      arguments.tessellation = number_option(usage, "-t", optarg, 4, TESSELLATION_MAX);
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
  if (arguments.pixels % JOB != 0)
    usage_error(usage, "-i %zu is no multiple of %d, the edge of a job", arguments.pixels, JOB);
  return arguments;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  struct raytrace raytrace = {.scene = scene_of_teapot(arguments.tessellation),
                              .pixels = arguments.pixels,
                              .threads = arguments.threads,
                              .flush = arguments.flush,
                              .level = arguments.level};
  raytrace.grid = grid_of_scene(&raytrace.scene);
  uint64_t resumed = open_pool(&raytrace, arguments.pool);
  make_queues(&raytrace);
  raytrace.regions = scene_memory(raytrace.threads, sizeof *raytrace.regions);
  raytrace.tracers = scene_memory(raytrace.threads, sizeof *raytrace.tracers);
  for (unsigned thread = 0; thread < raytrace.threads; thread++) {
    raytrace.regions[thread].written =
        line_set_new(raytrace.picture, raytrace.pixels * raytrace.pixels * sizeof(struct pixel));
    uint32_t *mailbox = scene_memory(raytrace.scene.count, sizeof *mailbox);
    raytrace.tracers[thread] = (struct tracer){&raytrace.scene, raytrace.grid, mailbox, 0, NULL};
  }

  team_run(raytrace.threads, render, &raytrace);

  uint64_t wrong = wrong_pixels(&raytrace);
  printf("raytrace: pixels=%zu triangles=%zu threads=%u level=%s flush=%s pixels_resumed=%" PRIu64
         " checksum=%016" PRIx64 " %s\n",
         raytrace.pixels, raytrace.scene.count, raytrace.threads,
         persist_level_names[raytrace.level], flush_names[raytrace.flush], resumed,
         checksum(&raytrace), wrong == 0 ? "ok" : "WRONG");
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
