// SPDX-License-Identifier: Apache-2.0
//
// Six-step complex Fourier transform of 2^m points, which goes on where it stopped after a crash.
//
// The points stand in a matrix of 2^(m/2) rows. A transform is transpose, transform the rows,
// multiply by the twiddle factors, transpose, transform the rows, transpose: three phases, each of
// which begins with a transpose of one matrix into the other. Each thread owns an equal share of
// the rows that a phase writes, and what follows the transpose happens in these, in place; so
// barriers stand between the phases only. (Steps, blocking and owners follow the description of the
// FFT kernel in Woo et al., "The SPLASH-2 Programs", ISCA 1995; recalled.)
//
// A phase never changes the matrix that it reads. What a crash has left half written is therefore
// made again from there: by the same loop, or for a row that was being transformed, which cannot go
// on from where it stands, by a transpose of that row and the stages it had finished.
//
// The transform is unitary (scaled by 1 / 2^(m/2)), so that it can be repeated on its own output:
// two in a row reverse the order of the points, four give back the input.
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint.h"
#include "options.h"
#include "persist.h"
#include "pool.h"
#include "scramble.h"
#include "team.h"

static const char usage[] = "fft [-m LOG2_POINTS (even)] [-l LOG2_LINE_BYTES] [-p THREADS] "
                            "[-r REPETITIONS] "
                            "[--persist-level barrier|coarse|fine] "
                            "[--flush none|clflush|clflushopt|clwb] [--pool FILE] [--crash-at N]";

static const uint64_t magic = UINT64_C(0x322d5446465f5046); // "FP_FFT-2"

enum {
  PHASES = 3,
  LOG2_POINTS_MAX = 24,
  REPETITIONS_MAX = 1000000,
  LOG2_LINE_MAX = 12,
  TILE = 8, // edge of a transpose's block in points: source and destination take 2 KiB
};

struct complex {
  double re, im;
};

struct fft {
  size_t side; // rows, and points in a row
  size_t stages;
  size_t row_points; // with a line behind each row: a column falls into many sets of the cache
  unsigned threads;
  enum flush flush;
  enum persist_level level;
  struct loop_index *indices;  // one for each thread
  struct complex *matrices[2]; // phase i reads i % 2 and writes the other
  struct complex *roots;       // exp(-2 pi i k / side)
  struct complex *twiddles;    // exp(-2 pi i r c / points) / side at row r, column c
  uint32_t *bit_reversed;
  uint64_t phases;      // of all repetitions
  uint64_t first_phase; // where this run begins
  pthread_barrier_t phase_barrier;
};

static struct complex multiply(struct complex a, struct complex b) {
  return (struct complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// exp(-2 pi i numerator / denominator)
static struct complex unit_root(uint64_t numerator, uint64_t denominator) {
  double angle = -2 * M_PI * (double)numerator / (double)denominator;
  return (struct complex){cos(angle), sin(angle)};
}

// Both parts from -1 to 1.
static struct complex input_point(size_t index) {
  uint64_t bits = scramble(index);
  return (struct complex){(int32_t)(bits >> 32) * 0x1p-31, (int32_t)bits * 0x1p-31};
}

static struct complex *matrix_row(const struct fft *fft, struct complex *matrix, size_t row) {
  return matrix + row * fft->row_points;
}

// Rows are dealt in order, in shares that differ by one at most.
static size_t first_row(const struct fft *fft, unsigned thread) {
  return thread * fft->side / fft->threads;
}

static bool is_transforming(uint64_t phase) { return phase % PHASES < PHASES - 1; }

// What one phase works on.
struct phase {
  const struct complex *source;
  struct complex *destination;
  bool is_transforming, is_twiddling;
};

static struct phase phase_at(const struct fft *fft, uint64_t phase) {
  return (struct phase){.source = fft->matrices[phase % 2],
                        .destination = fft->matrices[1 - phase % 2],
                        .is_transforming = is_transforming(phase),
                        .is_twiddling = phase % PHASES == 0};
}

static void transpose_tile(const struct fft *fft, struct phase phase, size_t row, size_t rows,
                           size_t column, size_t columns) {
  for (size_t j = column; j < column + columns; j++)
    for (size_t i = row; i < row + rows; i++)
      phase.destination[i * fft->row_points + j] = phase.source[j * fft->row_points + i];
}

static void reverse_bits(const struct fft *fft, struct complex *row) {
  for (size_t i = 0; i < fft->side; i++) {
    size_t other = fft->bit_reversed[i];
    if (i < other) {
      struct complex point = row[i];
      row[i] = row[other];
      row[other] = point;
    }
  }
}

// One stage of the radix-2 transform of a row, decimation in time: butterflies of points that stand
// `half` apart. What comes before the first stage and after the last one is part of them.
static void transform_stage(const struct fft *fft, struct phase phase, size_t row_number,
                            size_t half) {
  struct complex *row = matrix_row(fft, phase.destination, row_number);
  if (half == 1)
    reverse_bits(fft, row);
  size_t root_step = fft->side / (2 * half);
  for (size_t start = 0; start < fft->side; start += 2 * half)
    for (size_t i = start; i < start + half; i++) {
      struct complex even = row[i];
      struct complex odd = multiply(row[i + half], fft->roots[(i - start) * root_step]);
      row[i] = (struct complex){even.re + odd.re, even.im + odd.im};
      row[i + half] = (struct complex){even.re - odd.re, even.im - odd.im};
    }
  if (half == fft->side / 2 && phase.is_twiddling) {
    const struct complex *twiddles = matrix_row(fft, fft->twiddles, row_number);
    for (size_t i = 0; i < fft->side; i++)
      row[i] = multiply(row[i], twiddles[i]);
  }
}

// Where a thread is in its sequence of regions. A region is, at the level `barrier`, a phase; at
// `coarse`, the transpose of a group of rows, or the transform of one row; at `fine`, a tile of the
// transpose, or a stage of the transform.
struct position {
  struct fft *fft;
  unsigned thread;
  uint64_t passed;   // regions
  uint64_t finished; // when this run began
};

// Whether the loop that begins is a region that was finished before this run.
static bool is_finished(struct position *position, enum persist_level level) {
  return position->fft->level == level && position->passed++ < position->finished;
}

// Ends a loop that has written a part of these rows: if it is a region, persists them and then, in
// a step of its own, that it is finished.
static void finish(struct position *position, enum persist_level level, struct phase phase,
                   size_t row, size_t rows, size_t column, size_t columns) {
  const struct fft *fft = position->fft;
  if (fft->level != level)
    return;
  for (size_t i = row; i < row + rows; i++)
    flush_range(fft->flush, matrix_row(fft, phase.destination, i) + column,
                columns * sizeof *phase.destination);
  finish_region(fft->flush, &fft->indices[position->thread]);
}

// Every thread begins with the source rows that it owns, so that not all read the same ones at
// once.
static void transpose_rows(struct position *position, struct phase phase, size_t row, size_t rows) {
  const struct fft *fft = position->fft;
  size_t columns = fft->side < TILE ? fft->side : TILE;
  size_t own_column = first_row(fft, position->thread) / TILE * TILE;
  if (is_finished(position, LEVEL_COARSE))
    return;
  for (size_t offset = 0; offset < fft->side; offset += columns) {
    size_t column = (own_column + offset) % fft->side;
    if (is_finished(position, LEVEL_FINE))
      continue;
    transpose_tile(fft, phase, row, rows, column, columns);
    finish(position, LEVEL_FINE, phase, row, rows, column, columns);
  }
  finish(position, LEVEL_COARSE, phase, row, rows, 0, fft->side);
}

static void transform_row(struct position *position, struct phase phase, size_t row) {
  const struct fft *fft = position->fft;
  if (is_finished(position, LEVEL_COARSE))
    return;
  for (size_t half = 1; half < fft->side; half *= 2) {
    if (is_finished(position, LEVEL_FINE))
      continue;
    transform_stage(fft, phase, row, half);
    finish(position, LEVEL_FINE, phase, row, 1, 0, fft->side);
  }
  finish(position, LEVEL_COARSE, phase, row, 1, 0, fft->side);
}

static void perform(struct position *position, struct phase phase) {
  size_t begin = first_row(position->fft, position->thread);
  size_t end = first_row(position->fft, position->thread + 1);
  if (is_finished(position, LEVEL_BARRIER))
    return;
  for (size_t group = begin; group < end; group += TILE) {
    size_t rows = end - group < TILE ? end - group : TILE;
    transpose_rows(position, phase, group, rows);
  }
  for (size_t row = begin; phase.is_transforming && row < end; row++)
    transform_row(position, phase, row);
  finish(position, LEVEL_BARRIER, phase, begin, end - begin, 0, position->fft->side);
}

// Regions of a thread in a phase: of the transpose, and of the transform of each row after it.
struct regions {
  uint64_t transpose, row;
};

static struct regions regions_of(const struct fft *fft, unsigned thread) {
  size_t groups = (first_row(fft, thread + 1) - first_row(fft, thread) + TILE - 1) / TILE;
  if (fft->level == LEVEL_COARSE)
    return (struct regions){groups, 1};
  return (struct regions){groups * ((fft->side + TILE - 1) / TILE), fft->stages};
}

static uint64_t regions_before(const struct fft *fft, unsigned thread, uint64_t phase) {
  if (fft->level == LEVEL_BARRIER)
    return phase;
  struct regions regions = regions_of(fft, thread);
  uint64_t rows = first_row(fft, thread + 1) - first_row(fft, thread);
  uint64_t transforming = phase - phase / PHASES; // of these phases
  return phase * regions.transpose + transforming * rows * regions.row;
}

static void transform(unsigned thread, void *problem) {
  struct fft *fft = problem;
  struct position position = {fft, thread, regions_before(fft, thread, fft->first_phase),
                              fft->indices[thread].regions_finished};
  for (uint64_t phase = fft->first_phase; phase < fft->phases; phase++) {
    perform(&position, phase_at(fft, phase));
    pthread_barrier_wait(&fft->phase_barrier);
  }
}

// Tables that only depend on the size; they are volatile and made again by every run.
static void make_tables(struct fft *fft) {
  size_t side = fft->side;
  fft->roots = aligned_alloc(LINE_BYTES, side * sizeof *fft->roots);
  fft->bit_reversed = malloc(side * sizeof *fft->bit_reversed);
  fft->twiddles = aligned_alloc(LINE_BYTES, side * fft->row_points * sizeof *fft->twiddles);
  struct complex *fine_roots = aligned_alloc(LINE_BYTES, side * sizeof *fine_roots);
  if (!fft->roots || !fft->bit_reversed || !fft->twiddles || !fine_roots) {
    perror("no memory for the tables");
    exit(EXIT_FAILURE);
  }
  for (size_t i = 0; i < side; i++) {
    fft->roots[i] = unit_root(i, side);
    fine_roots[i] = unit_root(i, side * side);
    fft->bit_reversed[i] = i == 0 ? 0 : fft->bit_reversed[i / 2] / 2 + (i % 2) * (side / 2);
  }
  // Each twiddle factor is the product of a coarse and a fine root: no sine and cosine per point.
  // The scaling, by a power of two, is exact.
  for (size_t row = 0; row < side; row++)
    for (size_t column = 0; column < side; column++) {
      size_t power = row * column;
      struct complex root = multiply(fft->roots[power / side], fine_roots[power % side]);
      matrix_row(fft, fft->twiddles, row)[column] =
          (struct complex){root.re / (double)side, root.im / (double)side};
    }
  free(fine_roots);
}

static void write_input(struct fft *fft) {
  memset(fft->indices, 0, fft->threads * sizeof *fft->indices);
  flush_range(fft->flush, fft->indices, fft->threads * sizeof *fft->indices);
  for (size_t row = 0; row < fft->side; row++) {
    struct complex *points = matrix_row(fft, fft->matrices[0], row);
    for (size_t column = 0; column < fft->side; column++)
      points[column] = input_point(row * fft->side + column);
    flush_range(fft->flush, points, fft->side * sizeof *points);
  }
  fence(fft->flush);
}

// Opens or formats the pool; whether an earlier run has left it.
static bool open_pool(struct fft *fft, const char *path) {
  size_t matrix_bytes = fft->side * fft->row_points * sizeof(struct complex);
  size_t index_bytes = fft->threads * sizeof(struct loop_index);
  char *base = pool_open(path, sizeof(struct pool_header) + index_bytes + 2 * matrix_bytes, false);
  struct pool_header *header = (struct pool_header *)base;
  fft->indices = (struct loop_index *)(header + 1);
  fft->matrices[0] = (struct complex *)(fft->indices + fft->threads);
  fft->matrices[1] = (struct complex *)((char *)fft->matrices[0] + matrix_bytes);
  const uint64_t parameters[POOL_PARAMETERS] = {fft->side, fft->threads, fft->phases, fft->level,
                                                fft->row_points};
  if (pool_is_formatted(header, path, magic, parameters))
    return true;
  write_input(fft);
  pool_finish_format(header, magic, parameters, fft->flush);
  return false;
}

// Going on after a crash

// The phase that a thread was in: the last one that begins after no more regions than it finished.
static uint64_t find_phase(const struct fft *fft, unsigned thread) {
  uint64_t finished = fft->indices[thread].regions_finished;
  uint64_t phase = finished / regions_before(fft, thread, PHASES) * PHASES;
  while (regions_before(fft, thread, phase + 1) <= finished)
    phase++;
  return phase;
}

// If the thread was transforming a row, makes it again as it was when the region began that the
// crash may have cut short. That region writes all of the row, so nothing is persisted here.
static void repair_thread(struct fft *fft, unsigned thread) {
  if (fft->level == LEVEL_BARRIER || !is_transforming(fft->first_phase))
    return;
  struct regions regions = regions_of(fft, thread);
  uint64_t begin = regions_before(fft, thread, fft->first_phase) + regions.transpose;
  uint64_t finished = fft->indices[thread].regions_finished;
  if (finished < begin)
    return;
  struct phase phase = phase_at(fft, fft->first_phase);
  size_t row = first_row(fft, thread) + (finished - begin) / regions.row;
  transpose_tile(fft, phase, row, 1, 0, fft->side);
  for (uint64_t stage = 0; stage < (finished - begin) % regions.row; stage++)
    transform_stage(fft, phase, row, (size_t)1 << stage);
}

// Makes a pool that an earlier run has left ready to go on from, in the phase that the last of the
// threads has not finished; returns how many regions that run had finished.
static uint64_t resume(struct fft *fft, const char *path) {
  static const char damaged[] = "damaged: the threads' progress contradicts itself";
  uint64_t total = 0;
  fft->first_phase = fft->phases;
  for (unsigned thread = 0; thread < fft->threads; thread++) {
    uint64_t finished = fft->indices[thread].regions_finished;
    if (finished > regions_before(fft, thread, fft->phases))
      pool_mismatch(path, damaged);
    uint64_t phase = find_phase(fft, thread);
    fft->first_phase = phase < fft->first_phase ? phase : fft->first_phase;
    total += finished;
  }
  if (fft->first_phase == fft->phases)
    return total;
  for (unsigned thread = 0; thread < fft->threads; thread++) {
    uint64_t finished = fft->indices[thread].regions_finished;
    uint64_t next = regions_before(fft, thread, fft->first_phase + 1);
    if (finished < next)
      repair_thread(fft, thread);
    else if (finished > next) // a thread enters a phase when all have persisted the one before
      pool_mismatch(path, damaged);
  }
  return total;
}

// The output at an index, counted backwards from 0 when an even number of the transforms of the
// last group of four has reversed it.
static struct complex output_point(const struct fft *fft, size_t index) {
  size_t points = fft->side * fft->side;
  if (fft->phases / PHASES % 4 >= 2)
    index = (points - index) % points;
  size_t row = index / fft->side, column = index % fft->side;
  return fft->matrices[fft->phases % 2][row * fft->row_points + column];
}

typedef struct complex (*point_source)(const struct fft *fft, size_t index);

static struct complex original_point(const struct fft *fft, size_t index) {
  (void)fft;
  return input_point(index);
}

// The unitary transform's definition, for one frequency. Each row begins with an exact exponential,
// so that rounding errors do not add up over the whole input.
static struct complex fourier_sum(const struct fft *fft, point_source point, size_t frequency) {
  struct complex sum = {0, 0}, step = unit_root(frequency, fft->side * fft->side);
  for (size_t row = 0; row < fft->side; row++) {
    struct complex phase = unit_root(frequency * row % fft->side, fft->side);
    for (size_t column = 0; column < fft->side; column++) {
      struct complex term = multiply(point(fft, row * fft->side + column), phase);
      sum = (struct complex){sum.re + term.re, sum.im + term.im};
      phase = multiply(phase, step);
    }
  }
  return (struct complex){sum.re / (double)fft->side, sum.im / (double)fft->side};
}

static double distance(struct complex a, struct complex b) {
  return hypot(a.re - b.re, a.im - b.im);
}

// Largest error at sampled points after an odd number of transforms. One output is compared with
// its definition. Two inputs are recovered from the output by the inverse's definition: each
// depends on every output alike, so no wrong output goes unnoticed.
static double sampled_error(const struct fft *fft) {
  size_t points = fft->side * fft->side;
  size_t index = scramble(points) % points;
  double error_max = distance(fourier_sum(fft, original_point, index), output_point(fft, index));
  for (size_t sample = 1; sample <= 2; sample++) {
    index = scramble(points + sample) % points;
    struct complex recovered = fourier_sum(fft, output_point, (points - index) % points);
    error_max = fmax(error_max, distance(recovered, input_point(index)));
  }
  return error_max;
}

// Largest error after an even number of transforms, which give back every point of the input.
static double identity_error(const struct fft *fft) {
  double error_max = 0;
  for (size_t index = 0; index < fft->side * fft->side; index++)
    error_max = fmax(error_max, distance(output_point(fft, index), input_point(index)));
  return error_max;
}

// Of every bit of the output.
static uint64_t checksum(const struct fft *fft) {
  uint64_t sum = 0;
  for (size_t index = 0; index < fft->side * fft->side; index++) {
    struct complex point = output_point(fft, index);
    uint64_t bits[2];
    memcpy(bits, &point, sizeof bits);
    sum = scramble(scramble(sum ^ bits[0]) ^ bits[1]);
  }
  return sum;
}

struct arguments {
  unsigned log2_points, log2_line, threads;
  uint64_t repetitions;
  enum flush flush;
  enum persist_level level;
  const char *pool;
};

static struct arguments parse_arguments(int count, char **values) {
  static const struct option options[] = {{"flush", required_argument, NULL, 'f'},
                                          {"persist-level", required_argument, NULL, 'L'},
                                          {"pool", required_argument, NULL, 'P'},
                                          {"crash-at", required_argument, NULL, 'c'},
                                          {0}};
  struct arguments arguments = {.log2_points = 12,
                                .log2_line = 6,
                                .threads = 1,
                                .repetitions = 1,
                                .flush = FLUSH_CLFLUSH,
                                .level = LEVEL_FINE};
  for (int option; (option = getopt_long(count, values, "m:l:p:r:", options, NULL)) != -1;)
    switch (option) {
    case 'm':
      arguments.log2_points = (unsigned)number_option(usage, "-m", optarg, 4, LOG2_POINTS_MAX);
      break;
    case 'l':
      arguments.log2_line = (unsigned)number_option(usage, "-l", optarg, 6, LOG2_LINE_MAX);
      break;
    case 'p':
      arguments.threads = (unsigned)number_option(usage, "-p", optarg, 1, TEAM_THREADS_MAX);
      break;
    case 'r':
      arguments.repetitions = number_option(usage, "-r", optarg, 1, REPETITIONS_MAX);
      break;
    case 'f':
      arguments.flush = flush_option(usage, optarg);
      break;
    case 'L':
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
  if (arguments.log2_points % 2 != 0)
    usage_error(usage, "-m takes an even number, not %u", arguments.log2_points);
  if (arguments.threads > 1u << arguments.log2_points / 2)
    usage_error(usage, "-p %u is more than the %u rows", arguments.threads,
                1u << arguments.log2_points / 2);
  return arguments;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  struct fft fft = {.side = (size_t)1 << arguments.log2_points / 2,
                    .stages = arguments.log2_points / 2,
                    .threads = arguments.threads,
                    .phases = PHASES * arguments.repetitions,
                    .flush = arguments.flush,
                    .level = arguments.level};
  fft.row_points = fft.side + ((size_t)1 << arguments.log2_line) / sizeof(struct complex);
  make_tables(&fft);
  bool is_left = open_pool(&fft, arguments.pool);
  uint64_t resumed = is_left ? resume(&fft, arguments.pool) : 0;
  pthread_barrier_init(&fft.phase_barrier, NULL, fft.threads);

  team_run(fft.threads, transform, &fft);

  double error = arguments.repetitions % 2 == 0 ? identity_error(&fft) : sampled_error(&fft);
  bool is_right = error < 1e-11;
  printf("fft: points=2^%u threads=%u level=%s flush=%s regions_resumed=%" PRIu64
         " checksum=%016" PRIx64 " error=%.1e %s\n",
         arguments.log2_points, fft.threads, persist_level_names[fft.level], flush_names[fft.flush],
         resumed, checksum(&fft), error, is_right ? "ok" : "WRONG");
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
