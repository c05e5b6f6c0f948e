// SPDX-License-Identifier: Apache-2.0
//
// Blocked factorisation of a dense matrix, A = L U with ones on the diagonal of U and no pivoting,
// which goes on where it stopped after a crash. Built twice: `lu_cont` keeps each block in one
// piece, `lu_non` keeps the whole matrix by columns, where blocks share lines.
//
// Right-looking, in steps: the block on the diagonal, then the blocks below and right of it, then
// all blocks of the rest, with a barrier after each of the three. Blocks are dealt to the threads
// in two dimensions, so that each thread has a share of every step.
//
// The factorisation overwrites its input, so a block that a crash has left half written cannot go
// on from there. It is made again from the input, which follows from a formula, and from the parts
// of L and U of earlier steps, which are durable.
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

#ifdef LU_CONTIGUOUS
#define PROGRAM "lu_cont"
enum { IS_CONTIGUOUS = 1 };
#else
#define PROGRAM "lu_non"
enum { IS_CONTIGUOUS = 0 };
#endif

static const char usage[] =
    PROGRAM " [-n SIZE] [-b BLOCK] [-p THREADS] [--persist-level barrier|coarse|fine] "
            "[--flush none|clflush|clflushopt|clwb] [--pool FILE] [--crash-at N]";

static const uint64_t magic =
    IS_CONTIGUOUS ? UINT64_C(0x312d43554c5f5046) : UINT64_C(0x312d4e554c5f5046); // "FP_LUC-1", N

enum {
  SIZE_MAX_ = 16384,
  BLOCK_MAX = 64,
  // By columns the matrix begins where malloc would put it, 16 bytes behind a header.
  MISALIGNMENT = IS_CONTIGUOUS ? 0 : 16
};

struct lu {
  size_t size;   // of the matrix
  size_t block;  // edge
  size_t blocks; // in a row of blocks
  unsigned threads, thread_rows, thread_columns;
  enum flush flush;
  enum persist_level level;
  struct loop_index *indices; // one for each thread
  double *matrix;
  pthread_barrier_t barrier;
};

// One block in memory: element (row, column) is start[row + column * stride].
struct block {
  double *start;
  size_t stride;
};

static struct block block_at(const struct lu *lu, size_t row, size_t column) {
  size_t edge = lu->block;
  if (IS_CONTIGUOUS)
    return (struct block){lu->matrix + (row + column * lu->blocks) * edge * edge, edge};
  return (struct block){lu->matrix + row * edge + column * edge * lu->size, lu->size};
}

static unsigned owner(const struct lu *lu, size_t row, size_t column) {
  return (unsigned)(row % lu->thread_rows * lu->thread_columns + column % lu->thread_columns);
}

// Dominated by its diagonal, so that no pivoting is needed.
static double input_element(const struct lu *lu, size_t row, size_t column) {
  double random = (int32_t)(scramble(row + column * lu->size) >> 32) * 0x1p-31;
  return row == column ? random + (double)lu->size : random;
}

// The kernel of everything: one column less a multiple of another.
static void subtract_multiple(double *column, const double *other, size_t count, double factor) {
  for (size_t i = 0; i < count; i++)
    column[i] -= factor * other[i];
}

// What is done with a block in a step.
enum operation { FACTOR, DIVIDE, SOLVE, UPDATE };

// A step on one block: `left` and `upper` are the blocks that it depends on.
struct task {
  enum operation operation;
  size_t step, row, column;
};

static struct task task_of(size_t step, size_t row, size_t column) {
  enum operation operation =
      row == step ? (column == step ? FACTOR : SOLVE) : (column == step ? DIVIDE : UPDATE);
  return (struct task){operation, step, row, column};
}

// Iterations of the loop inside a block. The last column of U's unit triangle changes nothing.
static size_t iterations(const struct lu *lu, enum operation operation) {
  return operation == FACTOR || operation == DIVIDE ? lu->block - 1 : lu->block;
}

// The first column and row that iteration `k` writes; it writes all behind them.
static size_t first_column(enum operation operation, size_t k) {
  return operation == FACTOR || operation == DIVIDE ? k + 1 : 0;
}

static size_t first_row(enum operation operation, size_t k) {
  return operation == FACTOR || operation == SOLVE ? k : 0;
}

static void iterate(const struct lu *lu, struct task task, size_t k) {
  size_t edge = lu->block;
  struct block own = block_at(lu, task.row, task.column);
  struct block left = block_at(lu, task.row, task.step);
  struct block upper = block_at(lu, task.step, task.column);
  for (size_t j = first_column(task.operation, k); j < edge; j++) {
    double *column = own.start + j * own.stride;
    if (task.operation == FACTOR || task.operation == SOLVE) {
      // Against the lower triangle of the diagonal block, which is `left` in both cases.
      const double *pivot = left.start + k + k * left.stride;
      column[k] /= *pivot;
      subtract_multiple(column + k + 1, pivot + 1, edge - k - 1, column[k]);
    } else {
      const double *source =
          task.operation == DIVIDE ? own.start + k * own.stride : left.start + k * left.stride;
      subtract_multiple(column, source, edge, upper.start[k + j * upper.stride]);
    }
  }
}

static void flush_columns(const struct lu *lu, struct task task, size_t column, size_t row) {
  struct block own = block_at(lu, task.row, task.column);
  for (; column < lu->block; column++)
    flush_range(lu->flush, own.start + row + column * own.stride,
                (lu->block - row) * sizeof(double));
}

// Where a thread is in its sequence of regions.
struct position {
  struct lu *lu;
  unsigned thread;
  uint64_t passed;   // regions
  uint64_t finished; // when this run began
};

static bool is_next_region_finished(struct position *position) {
  return position->passed++ < position->finished;
}

static void perform(struct position *position, struct task task) {
  const struct lu *lu = position->lu;
  struct loop_index *index = &lu->indices[position->thread];
  size_t count = iterations(lu, task.operation);
  if (lu->level == LEVEL_FINE) {
    for (size_t k = 0; k < count; k++) {
      if (is_next_region_finished(position))
        continue;
      iterate(lu, task, k);
      flush_columns(lu, task, first_column(task.operation, k), first_row(task.operation, k));
      finish_region(lu->flush, index);
    }
    return;
  }
  if (lu->level == LEVEL_COARSE && is_next_region_finished(position))
    return;
  for (size_t k = 0; k < count; k++)
    iterate(lu, task, k);
  if (lu->level == LEVEL_COARSE) {
    flush_columns(lu, task, 0, 0);
    finish_region(lu->flush, index);
  }
}

// The three parts of a step.
enum part { DIAGONAL, PERIMETER, INTERIOR, PARTS };

typedef void (*task_visitor)(struct position *position, struct task task);

// Visits the blocks of one part of a step that belong to the thread; returns how many.
static size_t visit(struct position *position, enum part part, size_t step, task_visitor visitor) {
  const struct lu *lu = position->lu;
  size_t count = 0, low = part == INTERIOR ? step + 1 : step;
  for (size_t column = low; column < lu->blocks; column++)
    for (size_t row = low; row < lu->blocks; row++) {
      bool is_diagonal = row == step && column == step;
      bool is_perimeter = !is_diagonal && (row == step || column == step);
      if (part == DIAGONAL ? !is_diagonal : part == PERIMETER && !is_perimeter)
        continue;
      if (owner(lu, row, column) != position->thread)
        continue;
      visitor(position, task_of(step, row, column));
      count++;
    }
  return count;
}

static void flush_block(struct position *position, struct task task) {
  flush_columns(position->lu, task, 0, 0);
}

static void factorise(unsigned thread, void *problem) {
  struct lu *lu = problem;
  struct position position = {lu, thread, 0, lu->indices[thread].regions_finished};
  for (size_t step = 0; step < lu->blocks; step++)
    for (enum part part = DIAGONAL; part < PARTS; part++) {
      if (lu->level != LEVEL_BARRIER) {
        visit(&position, part, step, perform);
      } else if (!is_next_region_finished(&position)) {
        visit(&position, part, step, perform);
        visit(&position, part, step, flush_block);
        finish_region(lu->flush, &lu->indices[thread]);
      }
      pthread_barrier_wait(&lu->barrier);
    }
}

// Going on after a crash

// Makes a block as it was before its step, from the input and what earlier steps have made of L and
// U; the same operations in the same order, so the same bits.
static void make_again(const struct lu *lu, struct task task) {
  struct block own = block_at(lu, task.row, task.column);
  size_t edge = lu->block;
  for (size_t j = 0; j < edge; j++)
    for (size_t i = 0; i < edge; i++)
      own.start[i + j * own.stride] =
          input_element(lu, task.row * edge + i, task.column * edge + j);
  for (size_t step = 0; step < task.step; step++)
    for (size_t k = 0; k < edge; k++)
      iterate(lu, (struct task){UPDATE, step, task.row, task.column}, k);
}

// Makes a block again as it was when the region was begun that the crash may have cut short.
static void repair(struct position *position, struct task task) {
  const struct lu *lu = position->lu;
  size_t count = lu->level == LEVEL_FINE ? iterations(lu, task.operation) : 1;
  uint64_t before = position->passed;
  position->passed += lu->level == LEVEL_BARRIER ? 0 : count;
  bool is_cut = lu->level == LEVEL_BARRIER ||
                (before <= position->finished && position->finished < position->passed);
  if (!is_cut)
    return;
  make_again(lu, task);
  for (size_t k = 0; lu->level == LEVEL_FINE && k < position->finished - before; k++)
    iterate(lu, task, k);
  flush_columns(lu, task, 0, 0);
  fence(lu->flush);
}

// Repairs what the thread had begun, unless it had finished everything.
static void repair_thread(struct lu *lu, unsigned thread, const char *path) {
  struct position position = {lu, thread, 0, lu->indices[thread].regions_finished};
  for (size_t step = 0; step < lu->blocks; step++)
    for (enum part part = DIAGONAL; part < PARTS; part++) {
      if (lu->level != LEVEL_BARRIER)
        visit(&position, part, step, repair);
      else if (position.passed++ == position.finished)
        visit(&position, part, step, repair);
    }
  if (position.finished > position.passed)
    pool_mismatch(path, "damaged: a loop index is beyond the end");
}

// Makes a pool that an earlier run has left ready to go on from; returns how many regions that run
// had finished. Even if there were none, their first blocks may be half written.
static uint64_t resume(struct lu *lu, const char *path) {
  uint64_t finished = 0;
  for (unsigned thread = 0; thread < lu->threads; thread++)
    finished += lu->indices[thread].regions_finished;
  for (unsigned thread = 0; thread < lu->threads; thread++)
    repair_thread(lu, thread, path);
  return finished;
}

// Opens or formats the pool; whether an earlier run has left it.
static bool open_pool(struct lu *lu, const char *path) {
  size_t matrix_bytes = lu->size * lu->size * sizeof(double);
  size_t index_bytes = lu->threads * sizeof(struct loop_index);
  char *base = pool_open(
      path, sizeof(struct pool_header) + index_bytes + MISALIGNMENT + matrix_bytes, false);
  struct pool_header *header = (struct pool_header *)base;
  lu->indices = (struct loop_index *)(header + 1);
  lu->matrix = (double *)((char *)(lu->indices + lu->threads) + MISALIGNMENT);
  const uint64_t parameters[POOL_PARAMETERS] = {lu->size, lu->block, lu->threads, lu->level};
  if (pool_is_formatted(header, path, magic, parameters))
    return true;
  memset(lu->indices, 0, index_bytes);
  flush_range(lu->flush, lu->indices, index_bytes);
  for (size_t column = 0; column < lu->blocks; column++)
    for (size_t row = 0; row < lu->blocks; row++)
      make_again(lu, task_of(0, row, column));
  persist(lu->flush, lu->matrix, matrix_bytes);
  pool_finish_format(header, magic, parameters, lu->flush);
  return false;
}

// The answer

static double factor_element(const struct lu *lu, size_t row, size_t column) {
  struct block block = block_at(lu, row / lu->block, column / lu->block);
  return block.start[row % lu->block + column % lu->block * block.stride];
}

// Largest difference between A x and L (U x) for a random x, over the largest element of A x.
static double relative_error(const struct lu *lu) {
  size_t size = lu->size;
  double *x = malloc(3 * size * sizeof *x);
  if (x == NULL) {
    perror("no memory for the check");
    exit(EXIT_FAILURE);
  }
  double *upper = x + size, *difference = upper + size, error_max = 0, value_max = 0;
  for (size_t i = 0; i < size; i++)
    x[i] = (int32_t)scramble(size * size + i) * 0x1p-31;
  for (size_t i = 0; i < size; i++) {
    upper[i] = x[i];
    for (size_t j = i + 1; j < size; j++)
      upper[i] += factor_element(lu, i, j) * x[j];
  }
  for (size_t i = 0; i < size; i++) {
    double value = 0, product = 0;
    for (size_t j = 0; j < size; j++)
      value += input_element(lu, i, j) * x[j];
    for (size_t j = 0; j <= i; j++)
      product += factor_element(lu, i, j) * upper[j];
    difference[i] = fabs(value - product);
    value_max = fmax(value_max, fabs(value));
  }
  for (size_t i = 0; i < size; i++)
    error_max = difference[i] <= error_max ? error_max : difference[i]; // also if it is no number
  free(x);
  return error_max / value_max;
}

// Of every bit of L and U.
static uint64_t checksum(const struct lu *lu) {
  uint64_t sum = 0;
  for (size_t column = 0; column < lu->size; column++)
    for (size_t row = 0; row < lu->size; row++) {
      double element = factor_element(lu, row, column);
      uint64_t bits;
      memcpy(&bits, &element, sizeof bits);
      sum = scramble(sum ^ bits);
    }
  return sum;
}

struct arguments {
  size_t size, block;
  unsigned threads;
  enum flush flush;
  enum persist_level level;
  const char *pool;
};

static struct arguments parse_arguments(int count, char **values) {
  static const struct option options[] = {{"flush", required_argument, NULL, 'f'},
                                          {"persist-level", required_argument, NULL, 'l'},
                                          {"pool", required_argument, NULL, 'P'},
                                          {"crash-at", required_argument, NULL, 'c'},
                                          {0}};
  struct arguments arguments = {
      .size = 128, .block = 16, .threads = 1, .flush = FLUSH_CLFLUSH, .level = LEVEL_FINE};
  for (int option; (option = getopt_long(count, values, "n:b:p:", options, NULL)) != -1;)
    switch (option) {
    case 'n':
      arguments.size = number_option(usage, "-n", optarg, 2, SIZE_MAX_);
      break;
    case 'b':
      arguments.block = number_option(usage, "-b", optarg, 2, BLOCK_MAX);
      break;
    case 'p':
      arguments.threads = (unsigned)number_option(usage, "-p", optarg, 1, TEAM_THREADS_MAX);
      break;
    case 'f':
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
  if (arguments.size % arguments.block != 0)
    usage_error(usage, "-n %zu is no multiple of the blocks' edge, %zu", arguments.size,
                arguments.block);
  return arguments;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  struct lu lu = {.size = arguments.size,
                  .block = arguments.block,
                  .blocks = arguments.size / arguments.block,
                  .threads = arguments.threads,
                  .thread_rows = 1,
                  .flush = arguments.flush,
                  .level = arguments.level};
  for (unsigned rows = 1; rows * rows <= lu.threads; rows++)
    if (lu.threads % rows == 0)
      lu.thread_rows = rows;
  lu.thread_columns = lu.threads / lu.thread_rows;
  bool is_left = open_pool(&lu, arguments.pool);
  uint64_t resumed = is_left ? resume(&lu, arguments.pool) : 0;
  pthread_barrier_init(&lu.barrier, NULL, lu.threads);

  team_run(lu.threads, factorise, &lu);

  double error = relative_error(&lu);
  bool is_right = error < 1e-12;
  printf(PROGRAM ": size=%zu block=%zu threads=%u level=%s flush=%s regions_resumed=%" PRIu64
                 " checksum=%016" PRIx64 " error=%.1e %s\n",
         lu.size, lu.block, lu.threads, persist_level_names[lu.level], flush_names[lu.flush],
         resumed, checksum(&lu), error, is_right ? "ok" : "WRONG");
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
