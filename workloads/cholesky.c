// SPDX-License-Identifier: Apache-2.0
//
// Factorisation of a sparse symmetric positive definite matrix, A = L L^T, by supernodes and
// fan-out, which goes on where it stopped after a crash.
//
// The elimination tree is cut into domains, subtrees that one thread factors by itself, and the
// panels above them. No thread changes another's blocks: what domains contribute to those above is
// left to the owners of these, because the order of the sums would be open otherwise. After a
// barrier the threads compute the blocks above, each its own, which they take from their queues for
// one source at a time: whoever finishes a block queues, for their owners, the blocks that it
// changes. A block is changed by its sources in ascending order, whoever is first, so the bits of L
// do not depend on the threads. What a source contributes is computed by columns in a buffer and
// subtracted at the places that the rows have in the destination.
//
// A block is changed in place, so one that a crash has left half changed cannot go on from there.
// Each block has a durable count of the regions that are finished; a block that is not finished is
// made again from the input, which follows from a formula, and from its finished sources.
//
// The regions: `fine`: one column of what a source contributes to a block, or of the factorisation
// of the block; `coarse`: all columns of that; `barrier`: what a thread does by itself, which is
// each of its domains (there is a barrier behind them) and then each task that it takes from its
// queue. A block's count is of columns with `fine`, and of sources with
// the other two.
//
// Long because: it is the whole program, from its input to its check; the structure of a matrix is
// in cholesky_structure.h.
//
// Where it comes from: this is our own program of the class of algorithms, supernodal Cholesky with
// fan-out (Rothberg and Gupta), and follows no other source. The default input stands for BCSSTK18
// of the Harwell-Boeing collection (TK18), which is not here. Recalled of it: 11,948 columns,
// 80,519 elements in the lower triangle, and with minimum degree about 650,000 elements of L and
// 140 million operations. The building of `cholesky_matrix.h` was chosen among some 25 shapes
// because these come out near: 11,948 columns, 80,072 elements, 814,149 elements of L, 147.9
// million operations (the sum of the squares of the columns' elements). Every run computes and
// prints them. The default width of panels and ZEROS_PERCENT were then chosen, among a few values,
// with an eye on the published 365 million instructions of one thread and millions of persisted
// lines.
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint.h"
#include "cholesky_matrix.h"
#include "cholesky_structure.h"
#include "options.h"
#include "persist.h"
#include "pool.h"
#include "scramble.h"
#include "team.h"

static const char usage[] =
    "cholesky [-a NODES_AROUND] [-r RINGS] [-s SIDE] [-w PANEL_WIDTH] [-p THREADS] "
    "[--persist-level barrier|coarse|fine] [--flush none|clflush|clflushopt|clwb] [--pool FILE] "
    "[--crash-at N]";

static const uint64_t magic = UINT64_C(0x312d4c484350465f); // "_FPCHL-1"

enum { AROUND_MAX = 1024, RINGS_MAX = 1024, SIDE_MAX = 32 };

// The blocks above the domains that may have something to do.
struct queue {
  alignas(LINE_BYTES) pthread_mutex_t lock;
  pthread_cond_t is_filled;
  uint32_t first, last; // blocks, linked; `none` if there is none
};

struct cholesky {
  struct building building;
  size_t panel_width;
  unsigned threads;
  enum flush flush;
  enum persist_level level;
  struct matrix matrix;
  struct structure structure;
  struct loop_index *indices; // one for each block; what they count depends on the level
  double *factor;
  struct queue *queues;    // one for each thread
  struct scratch *scratch; // one for each thread
  pthread_barrier_t barrier;
};

static double *elements(const struct cholesky *cholesky, const struct block *block) {
  return cholesky->factor + block->offset;
}

static bool is_diagonal(const struct block *block) { return block->first_row == 0; }

static bool is_above(const struct cholesky *cholesky, const struct block *block) {
  return cholesky->structure.panel[block->panel].domain == none;
}

static struct block *diagonal_of(const struct cholesky *cholesky, const struct block *block) {
  const struct structure *structure = &cholesky->structure;
  return &structure->block[structure->panel[block->panel].first_block];
}

// One step of a block: some rows of `left` times the transpose of those of `upper` is subtracted.
struct step {
  bool is_last; // the block's own factorisation; `upper` is then the block on the diagonal
  const struct block *left, *upper;
  uint32_t left_first, left_end, upper_first;
  uint32_t columns;
};

static struct step step_of(const struct cholesky *cholesky, const struct block *block,
                           uint32_t number) {
  const struct structure *structure = &cholesky->structure;
  if (number == block->updates)
    return (struct step){true, block, diagonal_of(cholesky, block), 0, 0, 0, block->width};
  const struct update *update = &structure->update[block->first_update + number];
  struct rows left = update->left, upper = update->upper;
  return (struct step){false,
                       &structure->block[left.block],
                       &structure->block[upper.block],
                       left.first,
                       left.end,
                       upper.first,
                       upper.end - upper.first};
}

static bool is_ready(const struct cholesky *cholesky, const struct block *block) {
  struct step step = step_of(cholesky, block, block->step);
  if (step.is_last)
    return is_diagonal(block) || atomic_load(&step.upper->is_finished);
  return atomic_load(&step.left->is_finished) && atomic_load(&step.upper->is_finished);
}

// The kernel of everything: sum[i], from `first` to `end`, of `width` columns times their factors.
// Four columns at a time, which saves most of the loads and stores of the sum.
static void combine(double *restrict sum, const double *restrict left, size_t height, size_t first,
                    size_t end, const double *restrict factors, size_t stride, size_t width) {
  for (size_t i = first; i < end; i++)
    sum[i] = 0;
  size_t k = 0;
  for (; k + 4 <= width; k += 4) {
    const double *a = left + k * height, *b = a + height, *c = b + height, *d = c + height;
    const double *factor = factors + k * stride;
    double a_factor = factor[0], b_factor = factor[stride];
    double c_factor = factor[2 * stride], d_factor = factor[3 * stride];
    for (size_t i = first; i < end; i++)
      sum[i] += a[i] * a_factor + b[i] * b_factor + c[i] * c_factor + d[i] * d_factor;
  }
  if (width % 4 >= 2) {
    const double *a = left + k * height, *b = a + height;
    double a_factor = factors[k * stride], b_factor = factors[(k + 1) * stride];
    for (size_t i = first; i < end; i++)
      sum[i] += a[i] * a_factor + b[i] * b_factor;
    k += 2;
  }
  if (width % 2 == 1)
    for (size_t i = first; i < end; i++)
      sum[i] += left[i + k * height] * factors[k * stride];
}

// Elements of one column that have been written: those at `places` from `first` to `end`.
struct written_column {
  const double *column;
  size_t first, end;
};

// What a thread needs to compute a step.
struct scratch {
  uint32_t *places; // of the rows of the source in the destination
  double *sum;
  struct written_column written[PANEL_WIDTH_MAX]; // one for each column of the step
};

static void find_places(struct scratch *scratch, const struct block *block, struct step step) {
  if (step.is_last)
    for (uint32_t i = 0; i < block->height; i++)
      scratch->places[i] = i;
  for (uint32_t i = step.left_first, place = 0; i < step.left_end; i++) {
    while (block->rows[place] != step.left->rows[i])
      place++;
    scratch->places[i] = place;
  }
}

// A column of an update, scattered over the destination's.
static struct written_column update_column(const struct cholesky *cholesky, struct scratch *scratch,
                                           const struct block *block, struct step step, size_t j) {
  const struct block *left = step.left, *upper = step.upper;
  const uint32_t *places = scratch->places;
  size_t row = step.upper_first + j, end = step.left_end;
  // Where the rows are the same, above the diagonal is nothing.
  size_t first = left == upper && step.left_first == step.upper_first ? row : step.left_first;
  combine(scratch->sum, elements(cholesky, left), left->height, first, end,
          elements(cholesky, upper) + row, upper->height, left->width);
  uint32_t first_column = cholesky->structure.panel[block->panel].first;
  double *column = elements(cholesky, block) + (upper->rows[row] - first_column) * block->height;
  for (size_t i = first; i < end; i++)
    column[places[i]] -= scratch->sum[i];
  return (struct written_column){column, first, end};
}

// A column of the block's own factorisation: less the columns before it, then divided.
static struct written_column factor_column(const struct cholesky *cholesky, struct scratch *scratch,
                                           const struct block *block, struct step step, size_t j) {
  const double *diagonal = elements(cholesky, step.upper);
  size_t edge = step.upper->height, first = is_diagonal(block) ? j : 0;
  double *column = elements(cholesky, block) + j * block->height;
  combine(scratch->sum, elements(cholesky, block), block->height, first, block->height,
          diagonal + j, edge, j);
  for (size_t i = first; i < block->height; i++)
    column[i] -= scratch->sum[i];
  struct written_column written = {column, first, block->height};
  if (is_diagonal(block)) {
    column[j] = sqrt(column[j]);
    first++;
  }
  double pivot = diagonal[j + j * edge];
  for (size_t i = first; i < block->height; i++)
    column[i] /= pivot;
  return written;
}

static struct written_column compute_column(const struct cholesky *cholesky,
                                            struct scratch *scratch, const struct block *block,
                                            struct step step, size_t j) {
  return step.is_last ? factor_column(cholesky, scratch, block, step, j)
                      : update_column(cholesky, scratch, block, step, j);
}

// Flushes the line of `element`, unless it was the last to be flushed: `flushed_end` is where that
// one ended. Elements come in ascending order.
static void flush_once(enum flush flush, const char **flushed_end, const double *element) {
  if ((const char *)element < *flushed_end)
    return;
  flush_range(flush, element, sizeof *element);
  *flushed_end = (const char *)(((uintptr_t)element | (LINE_BYTES - 1)) + 1);
}

// Flushes the lines written in some columns of a step, in ascending order, each once.
static void flush_columns(const struct cholesky *cholesky, const struct scratch *scratch,
                          size_t first, size_t count) {
  if (cholesky->flush == FLUSH_NONE)
    return;
  const char *flushed_end = NULL;
  for (size_t j = first; j < first + count; j++) {
    const struct written_column *written = &scratch->written[j];
    for (size_t i = written->first; i < written->end; i++)
      flush_once(cholesky->flush, &flushed_end, &written->column[scratch->places[i]]);
  }
}

static bool is_step_a_region(const struct cholesky *cholesky, const struct block *block) {
  return cholesky->level == LEVEL_COARSE ||
         (cholesky->level == LEVEL_BARRIER && is_above(cholesky, block));
}

// Does the columns of the block's next step that are not done yet.
static void perform(struct cholesky *cholesky, struct block *block, struct step step) {
  struct loop_index *index = &cholesky->indices[block - cholesky->structure.block];
  struct scratch *scratch = &cholesky->scratch[block->owner];
  find_places(scratch, block, step);
  for (size_t j = block->column; j < step.columns; j++) {
    scratch->written[j] = compute_column(cholesky, scratch, block, step, j);
    if (cholesky->level == LEVEL_FINE) {
      flush_columns(cholesky, scratch, j, 1);
      finish_region(cholesky->flush, index);
    }
  }
  if (is_step_a_region(cholesky, block)) {
    flush_columns(cholesky, scratch, 0, step.columns);
    finish_region(cholesky->flush, index);
  }
  block->column = 0;
  block->step++;
}

// Queues

// Does nothing if the block waits already: its owner will then see what has become ready.
static void enqueue(struct cholesky *cholesky, struct block *block) {
  struct queue *queue = &cholesky->queues[block->owner];
  uint32_t index = (uint32_t)(block - cholesky->structure.block);
  pthread_mutex_lock(&queue->lock);
  if (!block->is_queued) {
    block->is_queued = true;
    block->next = none;
    if (queue->first == none)
      queue->first = index;
    else
      cholesky->structure.block[queue->last].next = index;
    queue->last = index;
    pthread_cond_signal(&queue->is_filled);
  }
  pthread_mutex_unlock(&queue->lock);
}

static struct block *dequeue(struct cholesky *cholesky, unsigned thread) {
  struct queue *queue = &cholesky->queues[thread];
  pthread_mutex_lock(&queue->lock);
  while (queue->first == none)
    pthread_cond_wait(&queue->is_filled, &queue->lock);
  struct block *block = &cholesky->structure.block[queue->first];
  queue->first = block->next;
  block->is_queued = false;
  pthread_mutex_unlock(&queue->lock);
  return block;
}

// Queues what the block, just finished, has made ready. Of two threads that finish the two sources
// of an update at the same time at least one sees that both are.
static void fan_out(struct cholesky *cholesky, const struct block *block) {
  const struct structure *structure = &cholesky->structure;
  const struct panel *panel = &structure->panel[block->panel];
  for (uint32_t i = panel->first_block + 1; is_diagonal(block) && i < panel->end_block; i++)
    if (panel->domain == none)
      enqueue(cholesky, &structure->block[i]);
  size_t index = (size_t)(block - structure->block);
  for (uint32_t i = structure->consumer_start[index]; i < structure->consumer_start[index + 1];
       i++) {
    const struct update *update = &structure->update[structure->consumer[i]];
    struct block *destination = &structure->block[update->destination];
    if (is_above(cholesky, destination) &&
        atomic_load(&structure->block[update->left.block].is_finished) &&
        atomic_load(&structure->block[update->upper.block].is_finished))
      enqueue(cholesky, destination);
  }
}

// Flushes the lines of a block that its factorisation writes: not those above the diagonal.
static void flush_factored(const struct cholesky *cholesky, const struct block *block) {
  if (cholesky->flush == FLUSH_NONE)
    return;
  const char *flushed_end = NULL;
  const double *column = elements(cholesky, block);
  for (size_t j = 0; j < block->width; j++, column += block->height)
    for (size_t i = is_diagonal(block) ? j : 0; i < block->height; i++)
      flush_once(cholesky->flush, &flushed_end, &column[i]);
}

// With `barrier`, ends the region that is a domain, which lies among the blocks from `first` to
// `end`. A cut may leave the indices of some blocks durable and of others not: what they count is.
static void finish_domain(struct cholesky *cholesky, unsigned thread, size_t first, size_t end) {
  const struct structure *structure = &cholesky->structure;
  bool is_anything_new = false;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = first; i < end; i++) {
      const struct block *block = &structure->block[i];
      struct loop_index *index = &cholesky->indices[i];
      if (block->owner != thread || is_above(cholesky, block) ||
          index->regions_finished == block->step)
        continue;
      if (pass == 0) {
        flush_factored(cholesky, block);
        is_anything_new = true;
      } else {
        index->regions_finished = block->step;
        flush_range(cholesky->flush, index, sizeof *index);
      }
    }
    fence(cholesky->flush);
  }
  if (is_anything_new)
    crash_point();
}

// Does the next step of a block, which is ready. Whether the block is finished now.
static bool advance(struct cholesky *cholesky, struct block *block) {
  perform(cholesky, block, step_of(cholesky, block, block->step));
  if (block->step <= block->updates)
    return false;
  atomic_store(&block->is_finished, true);
  fan_out(cholesky, block);
  return true;
}

// Whether the panel of a block is the last of its domain.
static bool ends_domain(const struct cholesky *cholesky, const struct block *block) {
  const struct panel *panel = cholesky->structure.panel;
  uint32_t parent = panel[block->panel].parent;
  return parent == none || panel[parent].domain == none;
}

// Blocks come after all that changes them.
static void factor_domains(struct cholesky *cholesky, unsigned thread) {
  size_t first = 0; // of the domain
  for (size_t i = 0; i < cholesky->structure.blocks; i++) {
    struct block *block = &cholesky->structure.block[i];
    if (block->owner != thread || is_above(cholesky, block))
      continue;
    while (block->step <= block->updates)
      advance(cholesky, block);
    if (cholesky->level == LEVEL_BARRIER && ends_domain(cholesky, block)) {
      finish_domain(cholesky, thread, first, i + 1);
      first = i + 1;
    }
  }
}

// Takes blocks from the thread's queue, for one step each, until all that it owns are finished.
static void factor_above(struct cholesky *cholesky, unsigned thread) {
  size_t blocks_left = 0;
  for (size_t i = 0; i < cholesky->structure.blocks; i++) {
    const struct block *block = &cholesky->structure.block[i];
    blocks_left +=
        block->owner == thread && is_above(cholesky, block) && !atomic_load(&block->is_finished);
  }
  while (blocks_left > 0) {
    struct block *block = dequeue(cholesky, thread);
    if (block->step > block->updates || !is_ready(cholesky, block))
      continue;
    if (advance(cholesky, block))
      blocks_left--;
    else if (is_ready(cholesky, block))
      enqueue(cholesky, block);
  }
}

static void factorise(unsigned thread, void *problem) {
  struct cholesky *cholesky = problem;
  factor_domains(cholesky, thread);
  pthread_barrier_wait(&cholesky->barrier);
  factor_above(cholesky, thread);
}

static void make_scratch(struct cholesky *cholesky) {
  cholesky->scratch = new_table(cholesky->threads, sizeof *cholesky->scratch);
  for (unsigned thread = 0; thread < cholesky->threads; thread++) {
    struct scratch *scratch = &cholesky->scratch[thread];
    scratch->places = new_table(cholesky->structure.height_max, sizeof *scratch->places);
    scratch->sum = new_table(cholesky->structure.height_max, sizeof *scratch->sum);
  }
}

static void make_queues(struct cholesky *cholesky) {
  cholesky->queues = aligned_alloc(LINE_BYTES, cholesky->threads * sizeof *cholesky->queues);
  if (cholesky->queues == NULL) {
    perror("no memory for the queues");
    exit(EXIT_FAILURE);
  }
  for (unsigned thread = 0; thread < cholesky->threads; thread++) {
    struct queue *queue = &cholesky->queues[thread];
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->is_filled, NULL);
    queue->first = queue->last = none;
  }
  // What is ready at once; all else is queued when it becomes so.
  for (size_t i = 0; i < cholesky->structure.blocks; i++) {
    struct block *block = &cholesky->structure.block[i];
    if (is_above(cholesky, block) && block->step <= block->updates && is_ready(cholesky, block))
      enqueue(cholesky, block);
  }
}

// Going on after a crash

// Makes a block as it is in the input.
static void write_input(const struct cholesky *cholesky, const struct block *block) {
  const struct matrix *matrix = &cholesky->matrix;
  uint32_t first_column = cholesky->structure.panel[block->panel].first;
  double *column = elements(cholesky, block);
  memset(column, 0, (size_t)block->height * block->width * sizeof *column);
  for (uint32_t j = first_column; j < first_column + block->width; j++, column += block->height)
    for (uint32_t i = matrix->start[j], place = 0; i < matrix->start[j + 1]; i++) {
      while (place < block->height && block->rows[place] < matrix->row[i])
        place++;
      if (place < block->height && block->rows[place] == matrix->row[i])
        column[place] = matrix->value[i];
    }
}

// Makes a block again as it was when `regions` of it were finished: the same operations in the same
// order, so the same bits. False if it cannot have had so many.
static bool make_again(const struct cholesky *cholesky, struct block *block, uint64_t regions) {
  write_input(cholesky, block);
  struct scratch *scratch = &cholesky->scratch[block->owner];
  while (regions > 0) {
    if (block->step > block->updates || !is_ready(cholesky, block))
      return false;
    struct step step = step_of(cholesky, block, block->step);
    find_places(scratch, block, step);
    for (size_t j = 0; j < step.columns && regions > 0; j++) {
      compute_column(cholesky, scratch, block, step, j);
      regions -= cholesky->level == LEVEL_FINE || j + 1 == step.columns;
      block->column++;
    }
    if (block->column == step.columns) {
      block->column = 0;
      block->step++;
    }
  }
  return true;
}

static uint64_t regions_of(const struct cholesky *cholesky, const struct block *block) {
  uint64_t regions = cholesky->level == LEVEL_FINE ? block->width : 1;
  for (uint32_t i = 0; i < block->updates; i++)
    regions += cholesky->level == LEVEL_FINE ? step_of(cholesky, block, i).columns : 1;
  return regions;
}

static void resume_block(struct cholesky *cholesky, struct block *block, const char *path) {
  uint64_t finished = cholesky->indices[block - cholesky->structure.block].regions_finished;
  if (finished == regions_of(cholesky, block)) {
    block->step = block->updates + 1;
    atomic_store(&block->is_finished, true);
    return;
  }
  if (!make_again(cholesky, block, finished))
    pool_mismatch(path, "damaged: a block is ahead of its sources");
  flush_range(cholesky->flush, elements(cholesky, block),
              (size_t)block->height * block->width * sizeof(double));
}

// Blocks come after all their sources. Returns how many regions an earlier run has finished.
static uint64_t resume(struct cholesky *cholesky, const char *path) {
  uint64_t finished = 0;
  for (size_t i = 0; i < cholesky->structure.blocks; i++) {
    finished += cholesky->indices[i].regions_finished;
    resume_block(cholesky, &cholesky->structure.block[i], path);
  }
  fence(cholesky->flush);
  return finished;
}

// Makes or opens the pool; returns how many regions an earlier run has finished.
static uint64_t open_pool(struct cholesky *cholesky, const char *path) {
  const struct structure *structure = &cholesky->structure;
  size_t index_bytes = structure->blocks * sizeof *cholesky->indices;
  size_t factor_bytes = structure->elements * sizeof *cholesky->factor;
  struct pool_header *header = pool_open(path, sizeof *header + index_bytes + factor_bytes, false);
  cholesky->indices = (struct loop_index *)(header + 1);
  cholesky->factor = (double *)(cholesky->indices + structure->blocks);
  const uint64_t parameters[POOL_PARAMETERS] = {cholesky->building.around, cholesky->building.rings,
                                                cholesky->building.side,   cholesky->panel_width,
                                                cholesky->threads,         cholesky->level};
  if (pool_is_formatted(header, path, magic, parameters))
    return resume(cholesky, path);
  memset(cholesky->indices, 0, index_bytes);
  flush_range(cholesky->flush, cholesky->indices, index_bytes);
  for (size_t i = 0; i < structure->blocks; i++)
    write_input(cholesky, &structure->block[i]);
  persist(cholesky->flush, cholesky->factor, factor_bytes);
  pool_finish_format(header, magic, parameters, cholesky->flush);
  return 0;
}

// The answer

// Adds L x, or L^T x.
static void add_product(const struct cholesky *cholesky, const double *x, double *sum,
                        bool is_transposed) {
  for (size_t i = 0; i < cholesky->structure.blocks; i++) {
    const struct block *block = &cholesky->structure.block[i];
    const double *element = elements(cholesky, block);
    uint32_t column = cholesky->structure.panel[block->panel].first;
    for (size_t j = 0; j < block->width; j++, column++)
      for (size_t k = 0; k < block->height; k++, element++)
        if (is_transposed)
          sum[column] += *element * x[block->rows[k]];
        else
          sum[block->rows[k]] += *element * x[column];
  }
}

// Largest difference between A x and L (L^T x) for a random x, over the largest element of A x.
static double relative_error(const struct cholesky *cholesky) {
  const struct matrix *matrix = &cholesky->matrix;
  size_t order = matrix->order;
  double *x = new_table(4 * order, sizeof *x);
  double *value = x + order, *upper = value + order, *product = upper + order;
  double error_max = 0, value_max = 0;
  for (size_t i = 0; i < order; i++)
    x[i] = (int32_t)scramble(order * order + i) * 0x1p-31;
  for (size_t j = 0; j < order; j++)
    for (uint32_t i = matrix->start[j]; i < matrix->start[j + 1]; i++) {
      value[matrix->row[i]] += matrix->value[i] * x[j];
      if (matrix->row[i] != j)
        value[j] += matrix->value[i] * x[matrix->row[i]];
    }
  add_product(cholesky, x, upper, true);
  add_product(cholesky, upper, product, false);
  for (size_t i = 0; i < order; i++) {
    double difference = fabs(value[i] - product[i]);
    error_max = difference <= error_max ? error_max : difference; // also if it is no number
    value_max = fmax(value_max, fabs(value[i]));
  }
  free(x);
  return error_max / value_max;
}

// Of every bit of L, in an order that does not depend on the blocks.
static uint64_t checksum(const struct cholesky *cholesky) {
  const struct structure *structure = &cholesky->structure;
  uint64_t sum = 0;
  for (size_t i = 0; i < structure->panels; i++)
    for (size_t column = 0; column < structure->panel[i].width; column++)
      for (uint32_t j = structure->panel[i].first_block; j < structure->panel[i].end_block; j++) {
        const struct block *block = &structure->block[j];
        const double *element = elements(cholesky, block) + column * block->height;
        for (size_t row = 0; row < block->height; row++) {
          uint64_t bits;
          memcpy(&bits, &element[row], sizeof bits);
          sum = scramble(sum ^ bits);
        }
      }
  return sum;
}

struct arguments {
  struct building building;
  size_t panel_width;
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
  struct arguments arguments = {.building = {.around = 21, .rings = 335, .side = 17},
                                .panel_width = 24,
                                .threads = 1,
                                .flush = FLUSH_CLFLUSH,
                                .level = LEVEL_FINE};
  for (int option; (option = getopt_long(count, values, "a:r:s:w:p:", options, NULL)) != -1;)
    switch (option) {
    case 'a':
      arguments.building.around = number_option(usage, "-a", optarg, 3, AROUND_MAX);
      break;
    case 'r':
      arguments.building.rings = number_option(usage, "-r", optarg, 1, RINGS_MAX);
      break;
    case 's':
      arguments.building.side = number_option(usage, "-s", optarg, 2, SIDE_MAX);
      break;
    case 'w':
      arguments.panel_width = number_option(usage, "-w", optarg, 1, PANEL_WIDTH_MAX);
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
  return arguments;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  struct cholesky cholesky = {.building = arguments.building,
                              .panel_width = arguments.panel_width,
                              .threads = arguments.threads,
                              .flush = arguments.flush,
                              .level = arguments.level};
  cholesky.matrix = make_matrix(&cholesky.building);
  cholesky.structure = make_structure(&cholesky.matrix, cholesky.panel_width, cholesky.threads);
  make_scratch(&cholesky);
  uint64_t resumed = open_pool(&cholesky, arguments.pool);
  make_queues(&cholesky);
  pthread_barrier_init(&cholesky.barrier, NULL, cholesky.threads);

  team_run(cholesky.threads, factorise, &cholesky);

  const struct structure *structure = &cholesky.structure;
  double error = relative_error(&cholesky);
  bool is_right = error < 1e-12;
  printf("cholesky: order=%zu elements=%u factor_elements=%" PRIu64 " operations=%" PRIu64
         " panels=%zu blocks=%zu threads=%u level=%s flush=%s regions_resumed=%" PRIu64
         " checksum=%016" PRIx64 " error=%.1e %s\n",
         cholesky.matrix.order, cholesky.matrix.start[cholesky.matrix.order],
         structure->factor_elements, structure->operations, structure->panels, structure->blocks,
         cholesky.threads, persist_level_names[cholesky.level], flush_names[cholesky.flush],
         resumed, checksum(&cholesky), error, is_right ? "ok" : "WRONG");
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
