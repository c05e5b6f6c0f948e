// SPDX-License-Identifier: Apache-2.0
//
// Six-step complex Fourier transform of 2^m points, which goes on where it stopped after a crash.
//
// The points stand in a matrix of 2^(m/2) rows. The transform is a chain of five phases, each of
// which reads one matrix and writes the other: transpose, transform rows and multiply by the
// twiddle factors, transpose, transform rows, transpose. Each thread owns an equal share of the
// rows that a phase writes; a barrier separates the phases. A phase never changes what it reads, so
// a row that a crash has left half written is simply computed again: a thread persists the rows it
// has finished, then the number of rows it has finished since the beginning.
//
// The transform is unitary (scaled by 1 / 2^(m/2)), so that it can be repeated on its own output:
// two in a row reverse the order of the points, four give back the input.
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "crash.h"
#include "options.h"
#include "persist.h"
#include "pool.h"
#include "scramble.h"
#include "team.h"

static const char usage[] = "fft [-m LOG2_POINTS (even)] [-p THREADS] [-r REPETITIONS] "
                            "[--flush none|clflush|clflushopt|clwb] [--pool FILE] [--crash-at N]";

static const uint64_t magic = UINT64_C(0x312d5446465f5046); // "FP_FFT-1"

enum {
  PHASES = 5,
  LOG2_POINTS_MAX = 24,
  REPETITIONS_MAX = 1000000,
  TILE = 8,        // edge of a transpose's block in points: source and destination take 2 KiB
  ROW_PADDING = 4, // points, one line: keeps a column from falling into few sets of the cache
};

struct complex {
  double re, im;
};

// In the pool, one line a thread; only its owner writes it.
struct progress {
  alignas(LINE_BYTES) uint64_t rows_finished; // over all phases of all repetitions
};

struct fft {
  size_t side; // rows, and points in a row
  size_t row_points;
  size_t rows_per_thread;
  unsigned threads;
  enum flush flush;
  struct progress *progress;
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

// Persists rows of the matrix that this phase writes and then, in a step of its own, their number:
// once it is durable, so are they.
static void finish_rows(const struct fft *fft, unsigned thread, struct complex *destination,
                        size_t row, size_t count) {
  for (size_t i = row; i < row + count; i++)
    flush_range(fft->flush, matrix_row(fft, destination, i), fft->side * sizeof *destination);
  fence(fft->flush);
  uint64_t *rows_finished = &fft->progress[thread].rows_finished;
  *rows_finished += count;
  persist(fft->flush, rows_finished, sizeof *rows_finished);
  crash_point();
}

static void transpose_tile(const struct fft *fft, const struct complex *source,
                           struct complex *destination, size_t row, size_t rows, size_t column) {
  size_t columns = fft->side < TILE ? fft->side : TILE;
  for (size_t i = row; i < row + rows; i++)
    for (size_t j = column; j < column + columns; j++)
      destination[i * fft->row_points + j] = source[j * fft->row_points + i];
}

// Every thread begins with the source rows that it owns, so that not all read the same ones at
// once.
static void transpose_rows(const struct fft *fft, unsigned thread, const struct complex *source,
                           struct complex *destination, size_t begin, size_t end) {
  size_t own_column = thread * fft->rows_per_thread / TILE * TILE;
  for (size_t row = begin; row < end;) {
    size_t rows = end - row < TILE ? end - row : TILE;
    for (size_t offset = 0; offset < fft->side; offset += TILE)
      transpose_tile(fft, source, destination, row, rows, (own_column + offset) % fft->side);
    finish_rows(fft, thread, destination, row, rows);
    row += rows;
  }
}

// Radix-2 transform of one row, decimation in time.
static void transform_row(const struct fft *fft, const struct complex *source,
                          struct complex *row) {
  for (size_t i = 0; i < fft->side; i++)
    row[fft->bit_reversed[i]] = source[i];
  for (size_t half = 1; half < fft->side; half *= 2) {
    size_t root_step = fft->side / (2 * half);
    for (size_t start = 0; start < fft->side; start += 2 * half)
      for (size_t i = start; i < start + half; i++) {
        struct complex even = row[i];
        struct complex odd = multiply(row[i + half], fft->roots[(i - start) * root_step]);
        row[i] = (struct complex){even.re + odd.re, even.im + odd.im};
        row[i + half] = (struct complex){even.re - odd.re, even.im - odd.im};
      }
  }
}

static void transform_rows(const struct fft *fft, unsigned thread, uint64_t phase,
                           struct complex *source, struct complex *destination, size_t begin,
                           size_t end) {
  for (size_t i = begin; i < end; i++) {
    struct complex *row = matrix_row(fft, destination, i);
    transform_row(fft, matrix_row(fft, source, i), row);
    if (phase % PHASES == 1) {
      const struct complex *twiddles = matrix_row(fft, fft->twiddles, i);
      for (size_t j = 0; j < fft->side; j++)
        row[j] = multiply(row[j], twiddles[j]);
    }
    finish_rows(fft, thread, destination, i, 1);
  }
}

static void transform(unsigned thread, void *problem) {
  struct fft *fft = problem;
  size_t own_row = thread * fft->rows_per_thread;
  for (uint64_t phase = fft->first_phase; phase < fft->phases; phase++) {
    struct complex *source = fft->matrices[phase % 2];
    struct complex *destination = fft->matrices[1 - phase % 2];
    size_t finished = fft->progress[thread].rows_finished - phase * fft->rows_per_thread;
    size_t end = own_row + fft->rows_per_thread;
    if (finished < fft->rows_per_thread) {
      if (phase % PHASES % 2 == 0)
        transpose_rows(fft, thread, source, destination, own_row + finished, end);
      else
        transform_rows(fft, thread, phase, source, destination, own_row + finished, end);
    }
    pthread_barrier_wait(&fft->phase_barrier);
  }
}

// Tables that only depend on the size; they are volatile and made again by every run.
static void make_tables(struct fft *fft) {
  size_t side = fft->side;
  fft->roots = aligned_alloc(LINE_BYTES, side * sizeof *fft->roots);
  fft->bit_reversed = aligned_alloc(LINE_BYTES, side * sizeof *fft->bit_reversed);
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
  for (unsigned thread = 0; thread < fft->threads; thread++)
    fft->progress[thread].rows_finished = 0;
  flush_range(fft->flush, fft->progress, fft->threads * sizeof *fft->progress);
  for (size_t row = 0; row < fft->side; row++) {
    struct complex *points = matrix_row(fft, fft->matrices[0], row);
    for (size_t column = 0; column < fft->side; column++)
      points[column] = input_point(row * fft->side + column);
    flush_range(fft->flush, points, fft->side * sizeof *points);
  }
  fence(fft->flush);
}

static void open_pool(struct fft *fft, const char *path) {
  size_t matrix_bytes = fft->side * fft->row_points * sizeof(struct complex);
  size_t progress_bytes = fft->threads * sizeof(struct progress);
  char *base =
      pool_open(path, sizeof(struct pool_header) + progress_bytes + 2 * matrix_bytes, false);
  struct pool_header *header = (struct pool_header *)base;
  fft->progress = (struct progress *)(header + 1);
  fft->matrices[0] = (struct complex *)(fft->progress + fft->threads);
  fft->matrices[1] = (struct complex *)((char *)fft->matrices[0] + matrix_bytes);
  const uint64_t parameters[POOL_PARAMETERS] = {fft->side, fft->threads, fft->phases};
  if (!pool_is_formatted(header, path, magic, parameters)) {
    write_input(fft);
    pool_finish_format(header, magic, parameters, fft->flush);
  }
}

// Where the threads go on: the phase that the last of them has not finished yet. Returns the number
// of rows that an earlier run has finished.
static uint64_t find_first_phase(struct fft *fft, const char *path) {
  uint64_t rows_total = 0, rows_min = UINT64_MAX, rows_max = 0;
  for (unsigned thread = 0; thread < fft->threads; thread++) {
    uint64_t rows = fft->progress[thread].rows_finished;
    rows_total += rows;
    rows_min = rows < rows_min ? rows : rows_min;
    rows_max = rows > rows_max ? rows : rows_max;
  }
  fft->first_phase = rows_min / fft->rows_per_thread;
  // A thread enters a phase only when all have persisted the one before.
  if (rows_max > fft->phases * fft->rows_per_thread ||
      rows_max > (fft->first_phase + 1) * fft->rows_per_thread)
    pool_mismatch(path, "damaged: the threads' progress contradicts itself");
  return rows_total;
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

struct arguments {
  unsigned log2_points, threads;
  uint64_t repetitions;
  enum flush flush;
  const char *pool;
};

static struct arguments parse_arguments(int count, char **values) {
  static const struct option options[] = {{"flush", required_argument, NULL, 'f'},
                                          {"pool", required_argument, NULL, 'P'},
                                          {"crash-at", required_argument, NULL, 'c'},
                                          {0}};
  struct arguments arguments = {
      .log2_points = 12, .threads = 1, .repetitions = 1, .flush = FLUSH_CLFLUSH};
  for (int option; (option = getopt_long(count, values, "m:p:r:", options, NULL)) != -1;)
    switch (option) {
    case 'm':
      arguments.log2_points = (unsigned)number_option(usage, "-m", optarg, 4, LOG2_POINTS_MAX);
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
  if ((1u << arguments.log2_points / 2) % arguments.threads != 0)
    usage_error(usage, "-p %u does not divide the %u rows", arguments.threads,
                1u << arguments.log2_points / 2);
  return arguments;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  struct fft fft = {.side = (size_t)1 << arguments.log2_points / 2,
                    .threads = arguments.threads,
                    .phases = PHASES * arguments.repetitions,
                    .flush = arguments.flush};
  fft.row_points = fft.side + ROW_PADDING;
  fft.rows_per_thread = fft.side / fft.threads;
  open_pool(&fft, arguments.pool);
  uint64_t rows_resumed = find_first_phase(&fft, arguments.pool);
  make_tables(&fft);
  pthread_barrier_init(&fft.phase_barrier, NULL, fft.threads);

  team_run(fft.threads, transform, &fft);

  double error = arguments.repetitions % 2 == 0 ? identity_error(&fft) : sampled_error(&fft);
  bool is_right = error < 1e-11;
  printf("fft: points=2^%u threads=%u flush=%s rows_resumed=%" PRIu64 " error=%.1e %s\n",
         arguments.log2_points, fft.threads, flush_names[fft.flush], rows_resumed, error,
         is_right ? "ok" : "WRONG");
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
